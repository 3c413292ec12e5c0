"""Tables and short words for a person."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jlremote.cli.terminal import answer, watched
from jlremote.text import one_line

if TYPE_CHECKING:
    from jlremote.workflow.report import Kernel, SessionReport

_STATE_STYLES = {
    "up": "green",
    "connecting": "yellow",
    "reconnecting": "yellow",
    "needs-auth": "yellow",
}


def show_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns; on a terminal cut to its width, with the column STATE in colour."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    if watched(sys.stdout):
        _show_rich(headings, rows)
    else:
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        for row in (headings, *rows):
            answer("  ".join(map(str.ljust, row, widths)).rstrip())


def _show_rich(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        # The first columns say which session it is; a narrow terminal takes from the others.
        table.add_column(heading, no_wrap=True, overflow="ellipsis", min_width=min(len(heading), 8))
    for row in rows:
        cells = [Text(cell) for cell in row]
        if "STATE" in headings:
            cells[headings.index("STATE")].stylize(state_style(row[headings.index("STATE")]))
        table.add_row(*cells)
    Console(highlight=False).print(table)


def state_style(state: str) -> str:
    """Return the colour of a state: green works, yellow mends itself or waits, red does not."""
    return _STATE_STYLES.get(state, "red")


def state_in_words(report: SessionReport) -> str:
    """Return the state in colour, and why it is so."""
    state = click.style(one_line(report.state), fg=state_style(report.state))
    return f"{state}, {one_line(report.detail)}" if report.detail else state


def session_row(report: SessionReport) -> tuple[str, ...]:
    """Return a session's line of the list."""
    port = str(report.local_port or "-")
    kernels = kernels_in_short(report.kernels)
    image = report.image or ("no container" if report.runtime == "none" else "-")
    return (report.name, report.host, report.state, kernels, port, report.gpus or "-", image)


def kernels_in_short(kernels: Sequence[Kernel] | None) -> str:
    """Return `2 busy`, `idle 3h`, `none`, or `?` where nobody could be asked."""
    if kernels is None:
        return "?"
    busy = [kernel for kernel in kernels if kernel.state != "idle"]
    if busy:
        return f"{len(busy)} busy"
    if not kernels:
        return "none"
    return f"idle {ago(max(kernel.last_activity for kernel in kernels))}"


def ago(moment: str) -> str:
    """Return the time since an ISO 8601 moment in its largest unit: `40s`, `5m`, `3h`, `2d`."""
    try:
        then = datetime.datetime.fromisoformat(moment)
    except ValueError:
        return "?"
    now = datetime.datetime.now(datetime.UTC)
    seconds = max(
        0, round((now - then.replace(tzinfo=then.tzinfo or datetime.UTC)).total_seconds())
    )
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
