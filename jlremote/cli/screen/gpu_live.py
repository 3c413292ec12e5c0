"""GPUs as they change, with their load of the last minutes as bars."""

from __future__ import annotations

import shutil
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jlremote.cli.screen import gpu_table
from jlremote.cli.screen.tables import state_style, table
from jlremote.cli.screen.terminal import takes
from jlremote.gpus.inventory import WELL_USED_PERCENT, Gpu, Inventory
from jlremote.schedulers.contract import ClusterGpus
from jlremote.text import one_line

if TYPE_CHECKING:
    from jlremote.cli.screen.gpu_table import Snapshot

MEMORY_WIDTH = 10
_MOST = 500  # moments that are remembered
_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", ".:-=+*#@"
# The columns that give way on a narrow terminal, each with its least width.
_LEAST = {"HOST": 6, "NAME": 6}
_LEAST_HISTORY = 8  # of the load's history, which is as wide as there is room
_WITH_BARS = ("GPU", "NAME", "MEMORY", "", "BUSY", "", "TEMP", "STATE")
_WITHOUT_BARS = ("GPU", "NAME", "MEMORY", "BUSY", "TEMP", "STATE")
_BARS = (2, 4)  # the columns that a terminal without room for them does without
_SPARE = ("POWER", "TEMP")  # of a pool: what a narrow terminal does without, in that order

Busy = dict[int, deque[int | None]]  # the load of each GPU over time, the latest value last
Cells = list[list[Text]]
Form = tuple[Sequence[str], Cells]  # headings and rows


def drawings(host: str, snapshots: Iterable[Snapshot]) -> Iterator[Group]:
    """Give the drawing of each snapshot of a host, a pool or a cluster, with the history before."""
    history: Busy = defaultdict(lambda: deque(maxlen=_MOST))
    for found in snapshots:
        width = shutil.get_terminal_size().columns
        _, (headings, rows), *_ = gpu_table.tables(found)
        users = table(headings, rows)
        notes = [Text(one_line(note), style="red") for note in gpu_table.notes(found)]
        if isinstance(found, ClusterGpus):
            jobs = users if users.row_count else Text("no jobs with GPUs")
            partitions = table(*gpu_table.tables(found)[0])
            hint = "asked once a minute; Ctrl-C ends"
            yield _group(host, hint, partitions, Text(""), jobs, *notes)
            continue
        if isinstance(found, Inventory):
            for gpu in found.gpus:
                history[gpu.index].append(gpu.busy)
            gpus = _host_table([row for gpu in found.gpus for row in _rows(gpu, history)], width)
        else:
            gpus = _pool_table(*gpu_table.tables(found)[0], width)
        people = users if users.row_count else Text("no users")
        yield _group(host, "Ctrl-C ends", *notes, gpus, Text(""), people)


def _group(host: str, hint: str, *parts: RenderableType) -> Group:
    return Group(Text(f"{one_line(host)}  ({hint})", style="dim"), *parts)


def _host_table(rows: Cells, width: int) -> Table:
    """Return the table of GPUs; a terminal without room for bars gets the numbers alone."""
    kept = [at for at in range(len(_WITH_BARS)) if at not in _BARS]
    without = [[row[at] for at in kept] for row in rows]
    return _fitted([(_WITH_BARS, rows), (_WITHOUT_BARS, without)], width, history=_BARS[1])


def _pool_table(headings: Sequence[str], rows: Iterable[gpu_table.Row], width: int) -> Table:
    """Return the table of a pool's GPUs."""
    cells = [[Text(one_line(cell)) for cell in row] for row in rows]
    for row in cells:
        row[-1].stylize(state_style(row[-1].plain))
    forms: list[Form] = [(headings, cells)]
    for spare in _SPARE:
        headings, cells = forms[-1]
        at = headings.index(spare)
        without = [[*row[:at], *row[at + 1 :]] for row in cells]
        forms.append(([*headings[:at], *headings[at + 1 :]], without))
    return _fitted(forms, width)


def _fitted(forms: Sequence[Form], width: int, history: int | None = None) -> Table:
    """Return the first form of a table that fits, else the last; no cell takes two lines.

    `history` is the column of the load's history in the first form.
    """
    for headings, rows in forms:
        columns = list(zip(*rows, strict=True)) or [()] * len(headings)
        wanted = [
            max((len(heading), *(cell.cell_len for cell in cells)))
            for heading, cells in zip(headings, columns, strict=True)
        ]
        least = [_LEAST.get(heading, wide) for heading, wide in zip(headings, wanted, strict=True)]
        if history is not None and headings is forms[0][0]:
            least[history], wanted[history] = _LEAST_HISTORY, width
        spare = width - len(headings) - sum(least)
        if spare >= 0:
            break
    drawn = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for at, heading in enumerate(headings):
        more = max(0, min(spare, wanted[at] - least[at]))
        spare -= more
        drawn.add_column(heading, width=least[at] + more, no_wrap=True)
        if wanted[at] == width:
            for row in rows:
                row[at] = row[at][-(least[at] + more) :]
    for row in rows:
        drawn.add_row(*row)
    return drawn


def _rows(gpu: Gpu, history: Busy) -> Iterator[list[Text]]:
    """Give the row of a GPU, and one for each of its MIG devices."""
    used, total = gpu.whole.memory_used or 0, gpu.whole.memory_total or 0
    yield [
        Text(str(gpu.index)),
        Text(one_line(gpu_table.short_name(gpu))),
        bar(used / total if total else 0.0),
        Text(gpu_table.memory(gpu.whole)),
        bars(list(history[gpu.index])),
        Text(gpu_table.percent(gpu.busy)),
        Text("?" if gpu.temperature is None else f"{gpu.temperature}C"),
        Text(gpu.state, style=state_style(gpu.state)),
    ]
    for part in gpu.slices:
        size, state = gpu_table.memory(part), part.state()
        words = (part.place, f"MIG {part.profile}", "", size, "", "", "", state)
        yield [Text(word) for word in words]


def bar(share: float) -> Text:
    """Return a fraction as a filled line."""
    full = round(min(1.0, max(0.0, share)) * MEMORY_WIDTH)
    mark, rest = ("█", "░") if takes(sys.stdout, "█") else ("#", ".")
    return Text(mark * full + rest * (MEMORY_WIDTH - full), style="cyan")


def bars(percents: list[int | None]) -> Text:
    """Return a bar for each moment: green for a well used GPU, else yellow."""
    blocks = _BLOCKS if takes(sys.stdout, _BLOCKS) else _PLAIN
    text = Text()
    for percent in percents:
        height = min(len(blocks) - 1, (percent or 0) * len(blocks) // 100)
        style = "green" if (percent or 0) >= WELL_USED_PERCENT else "yellow"
        text.append("?" if percent is None else blocks[height], style=style)
    return text
