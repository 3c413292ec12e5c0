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

from jlremote.cli.screen import cluster_table, gpu_table
from jlremote.cli.screen.tables import table
from jlremote.cli.screen.terminal import takes
from jlremote.gpus.inventory import WELL_USED_PERCENT, Gpu, Inventory
from jlremote.schedulers.contract import ClusterGpus
from jlremote.text import one_line
from jlremote.workflow.host.pools import PoolAnswer

MEMORY_WIDTH = 10
HEADINGS = ("GPU", "NAME", "MEMORY", "", "BUSY", "", "TEMP", "STATE")
_NAMES = ("HOST", "NAME")
_BARS_FROM = 80  # columns of a terminal; a narrower one has no room for them
_FROM = {"TEMP": 70, "POWER": 80}  # likewise, of a pool
_MOST = 500  # moments that are remembered
_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", ".:-=+*#@"


def drawings(host: str, snapshots: Iterable[Inventory | ClusterGpus]) -> Iterator[Group]:
    """Give the drawing of each snapshot, with the history of those before."""
    history: dict[int, deque[int | None]] = defaultdict(lambda: deque(maxlen=_MOST))
    for found in snapshots:
        if not isinstance(found, Inventory):
            yield cluster_table.drawn(host, found)
            continue
        for gpu in found.gpus:
            history[gpu.index].append(gpu.busy)
        if shutil.get_terminal_size().columns < _BARS_FROM:
            gpus = _without_bars(
                ("GPU", "NAME", "MEMORY", "BUSY", "TEMP", "STATE"),
                ((*row[:-2], row[-1]) for gpu in found.gpus for row in gpu_table.gpu_rows(gpu)),
            )
        else:
            rows = [row for gpu in found.gpus for row in _rows(gpu, history[gpu.index])]
            gpus = table(HEADINGS, rows, cut=("NAME", "BUSY"), gap=1)
        users = table(gpu_table.USER_HEADINGS, gpu_table.user_rows(found))
        yield _drawn(host, found.remarks, gpus, users)


def pool_drawings(pool: str, snapshots: Iterable[list[PoolAnswer[Inventory]]]) -> Iterator[Group]:
    """Give the drawing of each snapshot of a pool's hosts."""
    for answers in snapshots:
        width = shutil.get_terminal_size().columns
        headings = ("HOST", *gpu_table.GPU_HEADINGS)
        kept = [number for number, each in enumerate(headings) if width >= _FROM.get(each, 0)]
        rows = ([row[number] for number in kept] for row in gpu_table.pool_rows(answers))
        gpus = _without_bars([headings[number] for number in kept], rows)
        users = table(("HOST", *gpu_table.USER_HEADINGS), gpu_table.pool_user_rows(answers))
        yield _drawn(pool, gpu_table.pool_notes(answers), gpus, users)


def _without_bars(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    return table(headings, rows, cut=_NAMES, gap=1)


def _drawn(name: str, notes: Iterable[str], gpus: Table, users: Table) -> Group:
    title = Text(f"{one_line(name)}  (Ctrl-C ends)", style="dim")
    below = users if users.row_count else Text("no users")
    return Group(
        title, *(Text(one_line(note), style="red") for note in notes), gpus, Text(""), below
    )


def _rows(gpu: Gpu, history: Iterable[int | None]) -> Iterator[list[RenderableType]]:
    """Give the row of a GPU, and one for each of its MIG devices."""
    used, total = gpu.whole.memory_used or 0, gpu.whole.memory_total or 0
    drawn: tuple[RenderableType, ...] = (
        bar(used / total if total else 0.0),
        _Latest(bars(history)),
    )
    for place, name, memory, percent, temperature, _, state in gpu_table.gpu_rows(gpu):
        yield [place, name, drawn[0], memory, drawn[1], percent, temperature, state]
        drawn = ("", "")  # of a MIG device


class _Latest:
    """A line of which the end is shown where there is no room for all."""

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
