"""A session as it changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jlremote.cli.screen import tables
from jlremote.text import one_line

if TYPE_CHECKING:
    from jlremote.workflow.session.report import SessionReport


def show_live(reports: Iterable[SessionReport]) -> None:
    """Draw each report in the place of the last one, until there are no more."""
    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, redirect_stdout=False) as live:
        for report in reports:
            live.update(drawn(report), refresh=True)


def drawn(report: SessionReport) -> Group:
    """Return what is drawn for one moment."""
    lines = [Text.from_ansi(line) for line in tables.session_lines(report)]
    return Group(*lines, *_ports(report), Text("(Ctrl-C ends)", style="dim"))


def _ports(report: SessionReport) -> list[Table]:
    if not report.ports:
        return []
    table = Table(*tables.PORT_HEADINGS, box=None, padding=(0, 2, 0, 0), header_style="bold")
    for port in report.ports:
        cells = [Text(one_line(cell)) for cell in tables.port_row(port)]
        cells[2].stylize(tables.state_style(port.state))
        table.add_row(*cells)
    return [table]
