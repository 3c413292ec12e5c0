"""Sessions, ports, mounts, containers and images, as words and in tables with colour."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from jlremote import times
from jlremote.cli.screen.terminal import answer, answer_json, as_json, coloured, shown, watched
from jlremote.text import one_line, size_in_words

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from jlremote.forwards.address import PortReport
    from jlremote.hosts.context import Context
    from jlremote.images.image_commands import Image
    from jlremote.jupyter.api import Kernel
    from jlremote.kernels.specs import KernelSpec
    from jlremote.listing.listing import ContainerReport
    from jlremote.listing.session_report import SessionReport
    from jlremote.mounts.known_mounts import MountReport
    from jlremote.place.host.job import Job

_ID_DIGITS = 12
# In these no server runs, and so no kernel.
_WITHOUT_SERVER = (
    *("stopped", "idle-stopped", "container-stopped", "container-gone", "restarting", "restarted"),
    *("queued", "starting", "job-ended", "jupyter-dead", "created", "exited", "dead"),
)
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


def session_lines(report: SessionReport) -> list[str]:
    """Return the facts about a session, one per line."""
    state = click.style(one_line(report.state), fg=state_style(report.state))
    state += f" for {times.ago(report.since)}" if report.since else ""
    state += f", {one_line(report.detail)}" if report.detail else ""
    facts = {
        "session": f"{report.name} on {report.host}",
        "state": state,
        "url": shown(report.address),
        "runtime": report.runtime,
        "container": report.container,
        "image": report.image,
        "gpus": report.gpus,
        "job": _job(report),
        "kernels": _kernels(report),
        "idle stop": idle_stop_in_words(report.idle_stop),
        "awake by": ", ".join(report.awake or ()),
    }
    return [
        f"{name + ':':<11}{value if name == 'state' else one_line(value)}"
        for name, value in facts.items()
        if value
    ]


def drawn(report: SessionReport) -> RenderableType:
    """Return a session's drawing for `--watch`."""
    from rich.console import Group
    from rich.text import Text

    lines = [Text.from_ansi(line) for line in session_lines(report)]
    ports = [table(PORTS, rows(report.ports, PORTS))] if report.ports else []
    return Group(*lines, *ports, Text("(Ctrl-C ends)", style="dim"))


def _job(report: SessionReport) -> str | None:
    if report.job is None:
        return None
    left = None if report.time_left is None else f"{times.in_words(report.time_left)} left"
    return ", ".join(filter(None, (report.job, report.node and f"on {report.node}", left)))


def idle_stop_in_words(seconds: int | None) -> str | None:
    """Return what an idle stop does, `None` where there is none."""
    if not seconds:
        return None
    return (
        f"after {times.in_words(seconds)} without work idle kernels end, and then Jupyter, if no "
        "page or terminal is open; busy kernels and the container stay"
    )


def _kernels(report: SessionReport) -> str:
    has_none = report.kernels is None and report.state in _WITHOUT_SERVER
    return "" if has_none else kernels_in_short(report.kernels)


def kernels_in_short(kernels: Sequence[Kernel] | None) -> str:
    """Return `busy 12m a.ipynb`, `2 busy`, `idle 3h`, `none`, or `?` where that is not known."""
    if kernels is None:
        return "?"
    busy = [kernel for kernel in kernels if kernel.state != "idle"]
    runs = max(busy, key=lambda kernel: kernel.running or 0, default=None)
    if runs and runs.running is not None:
        more = f", {len(busy) - 1} more busy" if len(busy) > 1 else ""
        return f"busy {times.age(0, runs.running)} {runs.notebook.rpartition('/')[2]}{more}"
    if busy:
        return f"{len(busy)} busy"
    if not kernels:
        return "none"
    return f"idle {times.ago(max(kernel.last_activity for kernel in kernels))}"


def image_in_short(names: Sequence[str], image_id: str, size: int) -> str:
    """Return an image's names, id and size (bytes) in one line."""
    return f"{', '.join(names)}: {_short_id(image_id)}, {size_in_words(size)}"


def _short_id(image_id: str) -> str:
    return image_id if "/" in image_id else image_id.removeprefix("sha256:")[:_ID_DIGITS]


def _since(moment: str | None) -> str:
    return times.ago(moment) if moment else "-"


def port_reasons(ports: Iterable[PortReport]) -> list[str]:
    """Return why forwarded ports do not work, a line each, without those that are `closed`."""
    failing = (port for port in ports if port.detail and port.state != "closed")
    return [one_line(f"port {port.port}: {port.detail}") for port in failing]


def mount_reasons(mounts: Iterable[MountReport]) -> list[str]:
    """Return why mounts do not work, a line each."""
    return [one_line(f"{mount.record.local}: {mount.detail}") for mount in mounts if mount.detail]


def _job_state(job: Job) -> str:
    if (job.job or job.since is None) and job.over and job.detail:
        return job.detail.partition(": ")[0]  # how its scheduler or its wait ended it
    if job.until is not None and not job.over:
        return f"{job.state}, {times.left(job.until)} left"
    return job.state if job.exit_code is None else f"exit {job.exit_code}"


def _job_age(job: Job) -> str:
    since = job.since if job.ended is None else job.ended
    return times.age(since) if since else ""


SESSIONS: Columns[SessionReport] = {
    "SESSION": lambda report: report.name + (" *" if report.is_default else ""),
    "HOST": lambda report: report.host,
    "STATE": lambda report: report.state,
    "SINCE": lambda report: _since(report.since),
    "KERNELS": lambda report: _kernels(report) or "-",
    "PORT": lambda report: str(report.local_port or "-"),
    "GPUS": lambda report: report.gpus or "-",
    "IMAGE": lambda report: report.image or ("-" if report.container else "no container"),
}
JOB: Columns[SessionReport] = {"JOB": lambda report: _job(report) or "-"}
JOBS: Columns[tuple[str, Job]] = {  # of a host
    "JOB": lambda one: one[1].name,
    "HOST": lambda one: one[0],
    "STATE": lambda one: _job_state(one[1]),
    "SINCE": lambda one: _job_age(one[1]),
    "GPUS": lambda one: one[1].gpus or "",
    "WHERE": lambda one: one[1].container or one[1].node or "",
    "COMMAND": lambda one: one[1].command,
}
KERNELS: Columns[Kernel] = {
    "NOTEBOOK": lambda kernel: kernel.notebook,
    "STATE": lambda kernel: kernel.state,
    "SINCE": lambda kernel: (
        times.ago(kernel.last_activity) if kernel.running is None else times.age(0, kernel.running)
    ),
}
KERNEL_SPECS: Columns[KernelSpec] = {
    "KERNEL": lambda spec: spec.name,
    "SESSION": lambda spec: f"{spec.host}/{spec.session}",
    "KIND": lambda spec: spec.kind,
}
PORTS: Columns[PortReport] = {
    "PORT": lambda report: f"{report.port} of the host" if report.on_host else str(report.port),
    "HERE": lambda report: shown(report.address) or "-",
    "STATE": lambda report: report.state,
    "SINCE": lambda report: _since(report.since),
}
MOUNTS: Columns[MountReport] = {
    "MOUNTED AT": lambda report: report.record.local,
    "FOLDER": lambda report: f"{report.record.host}:{report.record.remote}",
    "SESSION": lambda report: report.record.session or "-",
    "STATE": lambda report: report.state,
}
CONTAINERS: Columns[ContainerReport] = {
    "CONTAINER": lambda report: report.name,
    "IMAGE": lambda report: report.image or "-",
    "STATE": lambda report: report.status,
    "JUPYTER": lambda report: "yes" if report.jupyter else "-",
    "SESSION": lambda report: "yes" if report.session else "-",
    "OWNER": lambda report: report.owner or "?",
    "GPUS": lambda report: report.gpus or "-",
}
IMAGES: Columns[Image] = {
    "REPOSITORY": lambda image: image.repository or "<none>",
    "TAG": lambda image: image.tag or "<none>",
    "ID": lambda image: _short_id(image.id),
    "AGE": lambda image: times.ago(image.created),
    "SIZE": lambda image: size_in_words(image.size),
}
