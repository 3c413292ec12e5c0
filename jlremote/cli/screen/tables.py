"""Tables: aligned columns, cut to the terminal's width, with states in colour."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jlremote.cli.screen.terminal import answer, answer_json, as_json, coloured, watched
from jlremote.text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from jlremote.hosts.context import Context

_WIDEST = 10_000  # nothing is cut in a file or pipe

# Columns of what is copied to another place, so nothing is cut off: long cells take more lines.
_COPIED = ("HERE", "MOUNTED AT", "FOLDER")

# Red is any other state: what has failed, and GPUs that are held without need.
_COLOURS = {
    "green": ("up", "idle", "free", "running", "exit 0"),
    "cyan": ("busy",),
    "yellow": (
        *("connecting", "reconnecting", "needs-auth", "stopped", "idle-stopped", "paused"),
        *("restarting", "queued", "starting", "exited", "created", "waiting", "held"),
        *("closed", "partly busy", "reserved", "assigned, idle", "cannot tell"),
    ),
}
_STATE_STYLES = {state: colour for colour, states in _COLOURS.items() for state in states}


class Report(Protocol):
    """A value that has a line in a table and an object in `--json`."""

    def to_json(self) -> dict[str, Any]:
        """Return the object."""


T = TypeVar("T")
R = TypeVar("R", bound=Report)
Columns = Mapping[str, Callable[[T], str]]  # each heading, and a value's cell below it
Reasons = Callable[[Sequence[T]], Iterable[str]]  # why values are as they are, a line each


def show_reports(
    reports: Sequence[R],
    columns: Columns[R],
    context: Context,
    *,
    none: str,
    reasons: Reasons[R] = lambda _: (),
) -> None:
    """Print reports as a table, with reasons below it, or as a JSON array."""
    if as_json():
        answer_json([report.to_json() for report in reports])
    elif reports:
        show_rows(reports, columns, reasons)
    else:
        context.progress.note(none)


def show_rows(values: Sequence[T], columns: Columns[T], reasons: Reasons[T] = lambda _: ()) -> None:
    """Print a table of values, with reasons below it."""
    show_table(columns, rows(values, columns))
    for reason in reasons(values):
        answer(reason)


def show_section(
    values: Sequence[T], columns: Columns[T], reasons: Reasons[T] = lambda _: ()
) -> None:
    """Print an empty line and a table, if there are values."""
    if values:
        answer("")
        show_rows(values, columns, reasons)


def rows(values: Iterable[T], columns: Columns[T]) -> Iterator[list[str]]:
    """Give the cells of each value."""
    return ([cell(value) for cell in columns.values()] for value in values)


def show_table(headings: Collection[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; on a terminal it is cut to the width, the widest column first."""
    import shutil

    from rich.console import Console

    colour = coloured(sys.stdout)
    console = Console(
        width=shutil.get_terminal_size().columns if watched(sys.stdout) else _WIDEST,
        color_system="standard" if colour else None,
        force_terminal=colour,
        highlight=False,
    )
    with console.capture() as drawn:
        console.print(table(headings, rows))
    answer("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def table(headings: Collection[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table with the column STATE in colour; text that has no room is cut."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    lines = [[one_line(cell) for cell in row] for row in rows]
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading, *cells in zip(headings, *lines, strict=True):
        # What is as narrow as its heading gives no room; the last column would be cut instead.
        stays = max(map(cell_len, (heading, *cells))) <= len(heading)
        drawn.add_column(heading, min_width=len(heading), no_wrap=stays)

    def shown(heading: str, cell: str) -> Text:
        style = state_style(cell) if heading == "STATE" else ""
        whole = heading in _COPIED
        return Text(cell, style, no_wrap=not whole, overflow="fold" if whole else "ellipsis")

    for line in lines:
        drawn.add_row(*map(shown, headings, line))
    return drawn


def show_live(drawings: Iterable[RenderableType]) -> None:
    """Draw each drawing in the place of the last one, until there are no more."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, redirect_stdout=False) as live:
        for drawing in drawings:
            live.update(drawing, refresh=True)


def state_style(state: str) -> str:
    """Return the colour of a state."""
    return _STATE_STYLES.get(state, "red")
