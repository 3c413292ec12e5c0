"""GPUs as they change, with their load of the last minutes as bars."""

from __future__ import annotations

import shutil
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.console import Group
from rich.table import Table
from rich.text import Text

from jlremote.cli.screen import gpu_table
from jlremote.cli.screen.tables import state_style, table
from jlremote.gpus.inventory import WELL_USED_PERCENT, Gpu, Inventory
from jlremote.text import one_line

MEMORY_WIDTH = 10
# What rich's columns need besides the history at 80 characters; the rest of the line is history.
_OTHER_COLUMNS = 73
_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", ".:-=+*#@"


def drawings(host: str, snapshots: Iterable[Inventory]) -> Iterator[Group]:
    """Give the drawing of each snapshot, with the history of those before."""
    history = History()
    for inventory in snapshots:
        history.add(inventory)
        yield drawn(host, inventory, history, shutil.get_terminal_size().columns)


class History:
    """The load of each GPU over time, the latest value last."""

    def __init__(self) -> None:
        self._busy: dict[int, deque[int | None]] = defaultdict(lambda: deque(maxlen=500))

    def add(self, inventory: Inventory) -> None:
        """Add the values of one moment."""
        for gpu in inventory.gpus:
            self._busy[gpu.index].append(gpu.busy)

    def last(self, index: int, count: int) -> list[int | None]:
        """Return the latest values of a GPU, in percent."""
        return list(self._busy[index])[-count:]


def drawn(host: str, inventory: Inventory, history: History, width: int) -> Group:
    """Return the drawing of one moment."""
    room = max(8, width - _OTHER_COLUMNS)
    gpus = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for heading in ("GPU", "NAME", "MEMORY", "", "BUSY", "", "TEMP", "STATE"):
        gpus.add_column(heading, no_wrap=True)
    for gpu in inventory.gpus:
        gpus.add_row(*_gpu_cells(gpu, history.last(gpu.index, room)))
        for part in gpu.slices:
            label, unknown = Text(f"MIG {part.profile}"), ("",) * 4
            state = gpu_table.state(part.state())
            gpus.add_row(part.place, label, gpu_table.memory(part), *unknown, state)
    users = table(gpu_table.USER_HEADINGS, gpu_table.user_rows(inventory))
    title = Text(f"{one_line(host)}  (Ctrl-C ends)", style="dim")
    return Group(title, gpus, Text(""), users if users.row_count else Text("no users"))


def _gpu_cells(gpu: Gpu, busy: list[int | None]) -> tuple[Text | str, ...]:
    state = gpu_table.state(gpu.state)
    used, total = gpu.whole.memory_used or 0, gpu.whole.memory_total or 0
    return (
        str(gpu.index),
        Text(one_line(gpu_table.short_name(gpu))),
        bar(used / total if total else 0.0),
        gpu_table.memory(gpu.whole),
        bars(busy),
        gpu_table.percent(gpu.busy),
        "?" if gpu.temperature is None else f"{gpu.temperature}C",
        Text(state, style=state_style(state)),
    )


def bar(share: float) -> Text:
    """Return a fraction as a filled line."""
    full = round(min(1.0, max(0.0, share)) * MEMORY_WIDTH)
    mark, rest = ("█", "░") if _unicode() else ("#", ".")
    return Text(mark * full + rest * (MEMORY_WIDTH - full), style="cyan")


def bars(percents: list[int | None]) -> Text:
    """Return a bar for each moment: green for a well used GPU, else yellow."""
    blocks = _BLOCKS if _unicode() else _PLAIN
    text = Text()
    for style, some in groupby(percents, key=_style):
        text.append("".join(_block(percent, blocks) for percent in some), style=style)
    return text


def _style(percent: int | None) -> str:
    return "green" if (percent or 0) >= WELL_USED_PERCENT else "yellow"


def _block(percent: int | None, blocks: str) -> str:
    return "?" if percent is None else blocks[min(len(blocks) - 1, percent * len(blocks) // 100)]


def _unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
