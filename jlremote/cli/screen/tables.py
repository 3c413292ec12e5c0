"""Tables and short words for a person."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.cells import cell_len, set_cell_size

from jlremote import times
from jlremote.cli.screen.terminal import answer, watched
from jlremote.text import one_line

if TYPE_CHECKING:
    from jlremote.jupyter.api import Kernel
    from jlremote.workflow.forward.port_report import PortReport
    from jlremote.workflow.mounts.known_mounts import MountReport
    from jlremote.workflow.session.report import SessionReport
    from jlremote.workflow.show.containers import ContainerReport

PORT_HEADINGS = ("PORT", "HERE", "STATE", "SINCE", "WHY")
CONTAINER_HEADINGS = ("CONTAINER", "IMAGE", "STATE", "JUPYTER", "SESSION", "OWNER", "GPUS")
MOUNT_HEADINGS = ("MOUNTED AT", "FOLDER", "SESSION", "STATE", "WHY")

_STATE_STYLES = {
    "up": "green",
    "connecting": "yellow",
    "reconnecting": "yellow",
    "needs-auth": "yellow",
    "stopped": "yellow",
    "idle-stopped": "yellow",
    # of a further port: nothing listens there yet
    "closed": "yellow",
    # of GPUs; red are those that are held without need
    "free": "green",
    "busy": "green",
    "below 90 %": "yellow",
    "reserved": "yellow",
    # of a job, and of a session that only its host knows
    "running": "green",
    "exit 0": "green",
    "created": "yellow",
    "held": "yellow",
}


def show_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns; on a terminal cut to its width, with the column STATE in colour."""
    cells = [list(headings), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    if watched(sys.stdout):
        widths = _fitted(widths, headings, shutil.get_terminal_size().columns)
    for row in cells:
        columns = zip(headings, row, widths, strict=True)
        answer("  ".join(_cell(heading, cell, width) for heading, cell, width in columns).rstrip())


def _cell(heading: str, cell: str, width: int) -> str:
    cut = cell if cell_len(cell) <= width else set_cell_size(cell, width - 1) + "…"
    padding = " " * (width - cell_len(cut))
    if cell == heading:
        return click.style(cut, bold=True) + padding
    return (click.style(cut, fg=state_style(cell)) if heading == "STATE" else cut) + padding


def _fitted(widths: Sequence[int], headings: Sequence[str], room: int) -> list[int]:
    """Return widths that fit into `room`, taking from the widest; a heading's width stays."""
    fitted = list(widths)
    excess = sum(fitted) + 2 * (len(fitted) - 1) - room
    for _ in range(excess):
        widest = max(range(len(fitted)), key=lambda i: (fitted[i] > len(headings[i]), fitted[i]))
        fitted[widest] -= fitted[widest] > len(headings[widest])
    return fitted


def state_style(state: str) -> str:
    """Return the colour of a state: green works, yellow mends itself or waits, red does not."""
    return _STATE_STYLES.get(state, "red")


def state_in_words(report: SessionReport) -> str:
    """Return the state in colour, for how long it has been so, and why."""
    state = click.style(one_line(report.state), fg=state_style(report.state))
    lasting = f"{state} for {times.ago(report.since)}" if report.since else state
    return f"{lasting}, {one_line(report.detail)}" if report.detail else lasting


def session_lines(report: SessionReport) -> list[str]:
    """Return what there is to say of a session, a fact a line."""
    facts = {
        "session": f"{report.name} on {report.host}",
        "state": state_in_words(report),
        "url": report.url,
        "runtime": report.runtime,
        "container": report.container,
        "image": report.image,
        "gpus": report.gpus,
        "kernels": kernels_in_short(report.kernels),
        "idle stop": idle_stop_in_words(report.idle_stop),
    }
    return [
        f"{name + ':':<11}{value if name == 'state' else one_line(value)}"
        for name, value in facts.items()
        if value
    ]


def idle_stop_in_words(seconds: int | None) -> str | None:
    """Return what an idle stop does; nothing if there is none."""
    if not seconds:
        return None
    return (
        f"after {times.in_words(seconds)} without work: each idle kernel, even under an open "
        "page, then Jupyter, once no terminal or page is open; never what is busy, and the "
        "container stays"
    )


def session_row(report: SessionReport) -> tuple[str, ...]:
    """Return a session's line of the list."""
    port = str(report.local_port or "-")
    kernels = kernels_in_short(report.kernels)
    image = report.image or ("no container" if report.runtime == "none" else "-")
    since = times.ago(report.since) if report.since else "-"
    where = (report.name, report.host, report.state, since)
    return (*where, kernels, port, report.gpus or "-", image)


def container_row(report: ContainerReport) -> tuple[str, ...]:
    """Return a container's line of a list."""
    jupyter = "yes" if report.jupyter else "-"
    session = "yes" if report.session else "-"
    facts = (report.name, report.image or "-", report.status, jupyter, session)
    return (*facts, report.owner or "?", report.gpus or "-")


def port_row(report: PortReport) -> tuple[str, ...]:
    """Return a further port's line of a list."""
    since = times.ago(report.since) if report.since else "-"
    return (str(report.port), report.url, report.state, since, report.detail or "")


def mount_row(report: MountReport) -> tuple[str, ...]:
    """Return a mount's line of a list."""
    shown = f"{report.host}:{report.remote}"
    return (report.local, shown, report.session, report.state, report.detail or "")


def kernels_in_short(kernels: Sequence[Kernel] | None) -> str:
    """Return `2 busy`, `idle 3h`, `none`, or `?` where nobody could be asked."""
    if kernels is None:
        return "?"
    busy = [kernel for kernel in kernels if kernel.state != "idle"]
    if busy:
        return f"{len(busy)} busy"
    if not kernels:
        return "none"
    return f"idle {times.ago(max(kernel.last_activity for kernel in kernels))}"
