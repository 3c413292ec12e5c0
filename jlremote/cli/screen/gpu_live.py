"""GPUs as they change, with their load of the last minutes as bars."""

from __future__ import annotations

import shutil
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from jlremote.cli.screen.gpu_table import Row, Shown, gpu_rows, notes_of, tables_of
from jlremote.cli.screen.tables import table
from jlremote.cli.screen.terminal import takes
from jlremote.gpus.inventory import WELL_USED_PERCENT, Gpu, Inventory
from jlremote.place.clusters.scheduler import ClusterGpus
from jlremote.text import one_line

MEMORY_WIDTH = 10
HEADINGS = ("GPU", "NAME", "MEMORY", "", "BUSY", "", "TEMP", "STATE")
_BARS_FROM = 80  # columns of a terminal; a narrower one has no room for them
_FROM = {"TEMP": 70, "POWER": 80}  # likewise, of a pool
_MOST = 500  # moments that are remembered
History = defaultdict[int, deque["int | None"]]  # the load of each GPU, in percent
_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", ".:-=+*#@"


def drawings(name: str, snapshots: Iterable[Shown]) -> Iterator[Group]:
    """Give the drawing of each snapshot, with the history of those before."""
    history: History = defaultdict(lambda: deque(maxlen=_MOST))
    for shown in snapshots:
        for gpu in shown.gpus if isinstance(shown, Inventory) else ():
            history[gpu.index].append(gpu.busy)
        how, none, style = "Ctrl-C ends", "no users", "red"
        if isinstance(shown, ClusterGpus):
            how, none, style = f"asked once a minute; {how}", "no jobs with GPUs", ""
        notes = [Text(one_line(note), style=style) for note in notes_of(shown)]
        gpus, (headings, users), *_ = tables_of(shown)
        below = table(headings, users) if users else Text(none)
        title = Text(f"{one_line(name)}  ({how})", style="dim")
        yield Group(title, *notes, _gpus(shown, *gpus, history), Text(""), below)


def _gpus(shown: Shown, headings: Row, rows: Sequence[Row], history: History) -> Table:
    width = shutil.get_terminal_size().columns
    if isinstance(shown, ClusterGpus):
        return table(headings, rows)
    if isinstance(shown, Inventory) and width >= _BARS_FROM:
        barred = [row for gpu in shown.gpus for row in _with_bars(gpu, history[gpu.index])]
        return table(HEADINGS, barred, cut=("NAME", "BUSY"), gap=1)
    least = {"POWER": 1000} if isinstance(shown, Inventory) else _FROM
    kept = [number for number, each in enumerate(headings) if width >= least.get(each, 0)]
    cells = ([row[number] for number in kept] for row in rows)
    return table([headings[number] for number in kept], cells, cut=("HOST", "NAME"), gap=1)


def _with_bars(gpu: Gpu, history: Iterable[int | None]) -> Iterator[list[RenderableType]]:
    used, total = gpu.whole.memory_used or 0, gpu.whole.memory_total or 0
    drawn: tuple[RenderableType, ...] = (
        bar(used / total if total else 0.0),
        _Latest(bars(history)),
    )
    for place, name, memory, percent, temperature, _, state in gpu_rows(gpu):
        yield [place, name, drawn[0], memory, drawn[1], percent, temperature, state]
        drawn = ("", "")  # of a MIG device


class _Latest:
    def __init__(self, line: Text) -> None:
        self._line = line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, max(1, self._line.cell_len))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._line[-options.max_width :]


def bar(share: float) -> Text:
    """Return a fraction as a filled line."""
    full = round(min(1.0, max(0.0, share)) * MEMORY_WIDTH)
    mark, rest = ("█", "░") if takes(sys.stdout, "█") else ("#", ".")
    return Text(mark * full + rest * (MEMORY_WIDTH - full), style="cyan")


def bars(percents: Iterable[int | None]) -> Text:
    """Return a bar for each moment: green for a well used GPU, else yellow."""
    blocks = _BLOCKS if takes(sys.stdout, _BLOCKS) else _PLAIN
    text = Text()
    for style, some in groupby(percents, key=_style):
        text.append("".join(_block(percent, blocks) for percent in some), style=style)
    return text


def _style(percent: int | None) -> str:
    return "green" if (percent or 0) >= WELL_USED_PERCENT else "yellow"


def _block(percent: int | None, blocks: str) -> str:
    return "?" if percent is None else blocks[min(len(blocks) - 1, percent * len(blocks) // 100)]
