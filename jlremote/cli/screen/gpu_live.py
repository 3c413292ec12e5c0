"""GPUs as they change, with their load of the last minutes as bars."""

from __future__ import annotations

import shutil
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Group
from rich.table import Table
from rich.text import Text

from jlremote.cli.screen import cluster_table, gpu_table
from jlremote.cli.screen.tables import state_style, table
from jlremote.cli.screen.terminal import takes
from jlremote.gpus.inventory import WELL_USED_PERCENT, Gpu, Inventory
from jlremote.schedulers.contract import ClusterGpus
from jlremote.text import one_line
from jlremote.workflow.host.pools import PoolAnswer

MEMORY_WIDTH = 10
HEADINGS = ("GPU", "NAME", "MEMORY", "", "BUSY", "", "TEMP", "STATE")
_NAME, _HISTORY = 1, 4  # the columns that give way on a narrow terminal
_LEAST = (6, 8)  # characters of each
_BARS = (2, 4)  # the columns that a terminal without room for them does without
_WITHOUT_BARS = ("GPU", "NAME", "MEMORY", "BUSY", "TEMP", "STATE")
_OF_POOL = ("HOST", *gpu_table.GPU_HEADINGS)
_SPARE = ("POWER", "TEMP")  # of a pool: what a narrow terminal does without, in that order
_MOST = 500  # moments that are remembered
_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", ".:-=+*#@"


def drawings(host: str, snapshots: Iterable[Inventory | ClusterGpus]) -> Iterator[Group]:
    """Give the drawing of each snapshot, with the history of those before."""
    history = History()
    for inventory in snapshots:
        if not isinstance(inventory, Inventory):
            yield cluster_table.drawn(host, inventory)
            continue
        history.add(inventory)
        yield drawn(host, inventory, history, shutil.get_terminal_size().columns)


def pool_drawings(pool: str, snapshots: Iterable[list[PoolAnswer[Inventory]]]) -> Iterator[Group]:
    """Give the drawing of each snapshot of a pool's hosts."""
    for answers in snapshots:
        title = Text(f"{one_line(pool)}  (Ctrl-C ends)", style="dim")
        notes = [Text(one_line(note), style="red") for note in gpu_table.pool_notes(answers)]
        gpus = _pool_table(gpu_table.pool_rows(answers), shutil.get_terminal_size().columns)
        users = table(("HOST", *gpu_table.USER_HEADINGS), gpu_table.pool_user_rows(answers))
        yield Group(title, *notes, gpus, Text(""), users if users.row_count else Text("no users"))


class History:
    """The load of each GPU over time, the latest value last."""

    def __init__(self) -> None:
        self._busy: dict[int, deque[int | None]] = defaultdict(lambda: deque(maxlen=_MOST))

    def add(self, inventory: Inventory) -> None:
        for gpu in inventory.gpus:
            self._busy[gpu.index].append(gpu.busy)

    def last(self, index: int, count: int) -> list[int | None]:
        """Return the latest values of a GPU, in percent."""
        return list(self._busy[index])[-count:]


def drawn(host: str, inventory: Inventory, history: History, width: int) -> Group:
    """Return the drawing of one moment."""
    rows = [row for gpu in inventory.gpus for row in _rows(gpu, history)]
    gpus = _table(rows, width)
    notes = [Text(one_line(remark), style="red") for remark in inventory.remarks]
    users = table(gpu_table.USER_HEADINGS, gpu_table.user_rows(inventory))
    title = Text(f"{one_line(host)}  (Ctrl-C ends)", style="dim")
    people = users if users.row_count else Text("no users")
    return Group(title, *notes, gpus, Text(""), people)


def _table(rows: list[list[Text]], width: int) -> Table:
    """Return the table of GPUs, in which names and history alone are ever cut.

    A terminal without room for that gets no bars: the numbers say the same.
    """
    headings: tuple[str, ...] = HEADINGS
    need = _need(headings, rows)
    rest = len(headings) + sum(need) - need[_NAME] - need[_HISTORY]
    if rest + sum(_LEAST) <= width:
        name = max(_LEAST[0], min(need[_NAME], width - rest - _LEAST[1]))
        widths = {_NAME: name, _HISTORY: width - rest - name}
        for row in rows:
            row[_HISTORY] = row[_HISTORY][-widths[_HISTORY] :]
    else:
        headings = _WITHOUT_BARS
        rows = [[cell for place, cell in enumerate(row) if place not in _BARS] for row in rows]
        need = _need(headings, rows)
        rest = len(headings) + sum(need) - need[_NAME]
        widths = {_NAME: max(_LEAST[0], min(need[_NAME], width - rest))}
    return _drawn(headings, rows, widths)


def _pool_table(rows: Iterable[gpu_table.Row], width: int) -> Table:
    """Return the table of a pool's GPUs, in which names alone are ever cut, the hosts' last."""
    headings: tuple[str, ...] = _OF_POOL
    cells = [[Text(one_line(cell)) for cell in row] for row in rows]
    for row in cells:
        row[-1].stylize(state_style(row[-1].plain))
    for spare in ("", *_SPARE):
        kept = [place for place, heading in enumerate(headings) if heading != spare]
        headings = tuple(headings[place] for place in kept)
        cells = [[row[place] for place in kept] for row in cells]
        host, gpu, name, *others = _need(headings, cells)
        rest = len(headings) + gpu + sum(others)
        if rest + 2 * _LEAST[0] <= width:
            break
    host = max(_LEAST[0], min(host, width - rest - _LEAST[0]))
    name = max(_LEAST[0], min(name, width - rest - host))
    return _drawn(headings, cells, {0: host, 2: name})


def _drawn(headings: Sequence[str], rows: Iterable[list[Text]], widths: dict[int, int]) -> Table:
    """Return a table with some columns of fixed widths, in which no cell takes two lines."""
    gpus = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for number, heading in enumerate(headings):
        gpus.add_column(heading, no_wrap=True, width=widths.get(number))
    for row in rows:
        gpus.add_row(*row)
    return gpus


def _need(headings: tuple[str, ...], rows: list[list[Text]]) -> list[int]:
    """Return the width of each column that cuts nothing."""
    columns = list(zip(*rows, strict=True)) or [()] * len(headings)
    return [
        max((len(heading), *(cell.cell_len for cell in cells)))
        for heading, cells in zip(headings, columns, strict=True)
    ]


def _rows(gpu: Gpu, history: History) -> Iterator[list[Text]]:
    """Give the row of a GPU, and one for each of its MIG devices."""
    used, total = gpu.whole.memory_used or 0, gpu.whole.memory_total or 0
    yield [
        Text(str(gpu.index)),
        Text(one_line(gpu_table.short_name(gpu))),
        bar(used / total if total else 0.0),
        Text(gpu_table.memory(gpu.whole)),
        bars(history.last(gpu.index, _MOST)),
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
    for style, some in groupby(percents, key=_style):
        text.append("".join(_block(percent, blocks) for percent in some), style=style)
    return text


def _style(percent: int | None) -> str:
    return "green" if (percent or 0) >= WELL_USED_PERCENT else "yellow"


def _block(percent: int | None, blocks: str) -> str:
    return "?" if percent is None else blocks[min(len(blocks) - 1, percent * len(blocks) // 100)]
