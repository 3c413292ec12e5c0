"""Sessions, ports, mounts, containers and images, as words and rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jlremote import times
from jlremote.cli.screen.tables import Columns, state_style, table
from jlremote.text import one_line, size_in_words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jlremote.images.commands import Image
    from jlremote.jupyter.api import Kernel
    from jlremote.workflow.forward.port_report import PortReport
    from jlremote.workflow.mounts.known_mounts import MountReport
    from jlremote.workflow.session.report import SessionReport
    from jlremote.workflow.show.containers import ContainerReport

_ID_DIGITS = 12


def session_lines(report: SessionReport) -> list[str]:
    """Return what is known of a session, a fact a line."""
    facts = {
        "session": f"{report.name} on {report.host}",
        "state": _state(report),
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


def drawn(report: SessionReport) -> RenderableType:
    """Return a session's drawing for `--watch`."""
    from rich.console import Group
    from rich.text import Text

    lines = [Text.from_ansi(line) for line in session_lines(report)]
    ports = [table(PORTS.headings, map(PORTS.row, report.ports))] if report.ports else []
    return Group(*lines, *ports, Text("(Ctrl-C ends)", style="dim"))


def _state(report: SessionReport) -> str:
    """Return the state in colour, for how long it has lasted, and why."""
    state = click.style(one_line(report.state), fg=state_style(report.state))
    lasting = f"{state} for {times.ago(report.since)}" if report.since else state
    return f"{lasting}, {one_line(report.detail)}" if report.detail else lasting


def idle_stop_in_words(seconds: int | None) -> str | None:
    """Return what an idle stop does, `None` where there is none."""
    if not seconds:
        return None
    return (
        f"after {times.in_words(seconds)} without work: each idle kernel, even under an open "
        "page, then Jupyter, once no terminal or page is open; never what is busy, and the "
        "container stays"
    )


def kernels_in_short(kernels: Sequence[Kernel] | None) -> str:
    """Return `2 busy`, `idle 3h`, `none`, or `?` where that is not known."""
    if kernels is None:
        return "?"
    busy = [kernel for kernel in kernels if kernel.state != "idle"]
    if busy:
        return f"{len(busy)} busy"
    if not kernels:
        return "none"
    return f"idle {times.ago(max(kernel.last_activity for kernel in kernels))}"


def _session(report: SessionReport) -> tuple[str, ...]:
    """Return a session's cells under the headings of `SESSIONS`."""
    return (
        report.name,
        report.host,
        report.state,
        _since(report.since),
        kernels_in_short(report.kernels),
        str(report.local_port or "-"),
        report.gpus or "-",
        report.image or ("no container" if report.runtime == "none" else "-"),
    )


def _kernel(kernel: Kernel) -> tuple[str, ...]:
    """Return a kernel's cells under the headings of `KERNELS`."""
    return (kernel.notebook, kernel.state, times.ago(kernel.last_activity))


def _port(report: PortReport) -> tuple[str, ...]:
    """Return a further port's cells under the headings of `PORTS`."""
    since = _since(report.since)
    return (str(report.port), report.url, report.state, since, report.detail or "")


def _mount(report: MountReport) -> tuple[str, ...]:
    """Return a mount's cells under the headings of `MOUNTS`."""
    folder = f"{report.host}:{report.remote}"
    return (report.local, folder, report.session, report.state, report.detail or "")


def _container(report: ContainerReport) -> tuple[str, ...]:
    """Return a container's cells under the headings of `CONTAINERS`."""
    jupyter, session = ("yes" if fact else "-" for fact in (report.jupyter, report.session))
    facts = (report.name, report.image or "-", report.status, jupyter, session)
    return (*facts, report.owner or "?", report.gpus or "-")


def _image(image: Image) -> tuple[str, ...]:
    """Return an image's cells under the headings of `IMAGES`."""
    name = (image.repository or "<none>", image.tag or "<none>", _short_id(image.id))
    return (*name, times.ago(image.created), size_in_words(image.size))


def image_in_short(names: Sequence[str], image_id: str, size: int) -> str:
    """Return an image's names, id and size (bytes) in one line."""
    return f"{', '.join(names)}: {_short_id(image_id)}, {size_in_words(size)}"


def _short_id(image_id: str) -> str:
    """Return the beginning of an image's id, as engines show it."""
    return image_id.removeprefix("sha256:")[:_ID_DIGITS]


def _since(moment: str | None) -> str:
    return times.ago(moment) if moment else "-"


SESSIONS = Columns(
    ("SESSION", "HOST", "STATE", "SINCE", "KERNELS", "PORT", "GPUS", "IMAGE"), _session
)
KERNELS = Columns(("NOTEBOOK", "STATE", "SINCE"), _kernel)
PORTS = Columns(("PORT", "HERE", "STATE", "SINCE", "WHY"), _port)
MOUNTS = Columns(("MOUNTED AT", "FOLDER", "SESSION", "STATE", "WHY"), _mount)
CONTAINERS = Columns(
    ("CONTAINER", "IMAGE", "STATE", "JUPYTER", "SESSION", "OWNER", "GPUS"), _container
)
IMAGES = Columns(("REPOSITORY", "TAG", "ID", "AGE", "SIZE"), _image)
