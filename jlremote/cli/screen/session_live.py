"""One session, drawn anew whenever it changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jlremote.cli.screen import reports
from jlremote.cli.screen.tables import table

if TYPE_CHECKING:
    from jlremote.workflow.session.report import SessionReport


def show_live(changing: Iterable[SessionReport]) -> None:
    """Draw each report in the place of the last one, until there are no more."""
    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, redirect_stdout=False) as live:
        for report in changing:
            live.update(drawn(report), refresh=True)


def drawn(report: SessionReport) -> Group:
    """Return the drawing of one moment."""
    lines = [Text.from_ansi(line) for line in reports.session_lines(report)]
    return Group(*lines, *_ports(report), Text("(Ctrl-C ends)", style="dim"))


def _ports(report: SessionReport) -> list[Table]:
    if not report.ports:
        return []
    return [table(reports.PORTS.headings, map(reports.PORTS.row, report.ports))]
