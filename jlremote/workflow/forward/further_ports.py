"""Forwards of a session's further ports, for TensorBoard or a web app beside Jupyter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from jlremote.errors import Busy, JlrError
from jlremote.jupyter.discovery import place_of
from jlremote.jupyter.locate import ContainerGone, Survey
from jlremote.link.client.link import Link
from jlremote.link.wire.states import State
from jlremote.link.wire.status import PortStatus
from jlremote.ports.endpoint import PortEndpoint
from jlremote.runtimes.contract import Runtime
from jlremote.storage.sessions import PortRecord, SessionRecord
from jlremote.times import utc
from jlremote.workflow.forward import local_ports
from jlremote.workflow.forward.port_report import PortReport
from jlremote.workflow.host.context import Progress
from jlremote.workflow.host.link_state import Unreached


def endpoint(runtime: Runtime, found: Survey, name: str, port: int) -> PortEndpoint:
    """Return where a forward of a session's port leads.

    Raises:
        ContainerGone: the survey found no container that runs.
    """
    if found.container is None or not found.container.running:
        raise ContainerGone(f"the container `{name}` is gone or does not run")
    python = found.server.python if found.server else ""
    return PortEndpoint(place_of(runtime, found.container), port, python)


def hold(
    link: Link, record: SessionRecord, to: PortEndpoint, progress: Progress, undo: ExitStack
) -> PortStatus:
    """Forward the local port that the session had for it, else the first that is free.

    Args:
        link: to the session's host.
        record: the session.
        to: where it leads.
        progress: is told when it is another port than it had.
        undo: puts it back as it was.

    Raises:
        Busy: none is free.
    """
    before = link.status(connect=True).port(record.name, to.port)
    undo.callback(_put_back, link, to, before, progress)
    wanted = None
    for local in _candidates(record, to.port):
        try:
            held = link.forward_port(local, to)
        except Busy:
            wanted = wanted or local_ports.taken(local, record.host, record.name)
        else:
            if wanted is not None:
                progress.note(f"{wanted.message}; {local} is free and stays yours")
            return held
    raise Busy("no local port is free", hint=f"ports from {to.port} on were tried")


def _put_back(link: Link, to: PortEndpoint, before: PortStatus | None, progress: Progress) -> None:
    try:
        if before is None:
            link.unforward_port(to.place.name, to.port)
        else:
            link.forward_port(before.local_port, before.endpoint)
    except JlrError as error:
        progress.note(f"the forward of port {to.port} is not as it was before: {error.message}")


def with_port(record: SessionRecord, port: PortRecord) -> SessionRecord:
    """Return the record with one port more, or with another local port for it."""
    others = (known for known in record.ports if known.port != port.port)
    return replace(record, ports=tuple(sorted((*others, port), key=lambda one: one.port)))


def reports(
    record: SessionRecord, told: Sequence[PortStatus] | Unreached
) -> tuple[PortReport, ...]:
    """Return the session's ports as the link tells them; none is looked at."""
    if isinstance(told, Unreached):
        return tuple(unreached(port, told) for port in record.ports)
    held = {status.endpoint.port: status for status in told}
    return tuple(
        report(held[port.port]) if port.port in held else not_held(port, record)
        for port in record.ports
    )


def _candidates(record: SessionRecord, port: int) -> Iterator[int]:
    yield from (known.local_port for known in record.ports if known.port == port)
    yield from local_ports.further_candidates(port)


def report(status: PortStatus) -> PortReport:
    """Return what the link tells of a further port."""
    since = utc(status.since)
    return PortReport(status.endpoint.port, status.local_port, status.state, since, status.detail)


def not_held(port: PortRecord, record: SessionRecord) -> PortReport:
    """Return the report of a port that did not come back with the link."""
    why = f"it is not forwarded; `jlr forward {record.name} {port.port}` does it"
    return PortReport(port.port, port.local_port, str(State.DOWN), None, why)


def unreached(port: PortRecord, why: Unreached) -> PortReport:
    """Return the report of a port whose host is not reached."""
    return PortReport(port.port, port.local_port, why.state, why.since, why.detail)
