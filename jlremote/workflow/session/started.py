"""What a start has brought about: as this laptop remembers it, and as a person is told."""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.jupyter.address import address
from jlremote.jupyter.api import Access
from jlremote.jupyter.server import Server
from jlremote.link.wire.status import ForwardStatus
from jlremote.ports.endpoint import Endpoint
from jlremote.runtimes.contract import Container
from jlremote.storage import sessions
from jlremote.storage.sessions import PortRecord, SessionRecord
from jlremote.times import utc
from jlremote.workflow.container.start_context import StartContext
from jlremote.workflow.forward.answer import of_access
from jlremote.workflow.forward.forwards import hold
from jlremote.workflow.forward.port_report import PortReport, reports
from jlremote.workflow.session.report import SessionReport


@dataclass(frozen=True)
class Started:
    """What runs now.

    Attributes:
        container: where.
        server: the Jupyter server in it.
        launched: whether that was launched just now.
        forward: the way there.
        access: what the server asks for.
    """

    container: Container
    server: Server
    launched: bool
    forward: ForwardStatus
    access: Access


def remember(start: StartContext, started: Started) -> tuple[PortReport, ...]:
    """Save the session's record, and forward the further ports that are in it.

    Raises:
        Busy: no local port is free for one of them.
        JlrError: the record cannot be written.
    """
    record, ports = _with_further_ports(start, _record(start, started), started)
    sessions.save(record)
    return ports


def report(start: StartContext, started: Started, ports: tuple[PortReport, ...]) -> SessionReport:
    """Return what a person is told of a session that has just been started."""
    container, server, forward = started.container, started.server, started.forward
    return SessionReport(
        name=start.name,
        host=start.request.host,
        container=start.name if start.runtime.has_containers else None,
        runtime=start.runtime.name,
        state="up",
        url=address(server, forward.local_port),
        local_port=forward.local_port,
        since=utc(forward.since),
        image=container.image,
        gpus=container.gpus,
        ports=ports,
        access=started.access,
        idle_stop=server.idle_stop or None,
        detail=of_access(started.access, start.request.host),
        started_here=started.launched,
    )


def _record(start: StartContext, started: Started) -> SessionRecord:
    config, known = start.context.ssh_config, start.known
    return SessionRecord(
        host=start.request.host,
        name=start.name,
        typed=_typed(start) or (known.typed if known else None),
        runtime=start.runtime.name,
        local_port=started.forward.local_port,
        ssh_config=None if config is None else str(config.resolve()),
        image=started.container.image,
        gpus=started.container.gpus,
        ports=known.ports if known else (),
        open_allowed=start.open_allowed,
    )


def _typed(start: StartContext) -> str | None:
    """Return what the person calls the session, where that is not its name."""
    return None if start.request.container == start.name else start.request.container


def _with_further_ports(
    start: StartContext, record: SessionRecord, started: Started
) -> tuple[SessionRecord, tuple[PortReport, ...]]:
    """Forward the ports that the session had, and those that are asked for now.

    Returns:
        The record with the local ports, and what is told of them.
    """
    told, place, python = [], started.forward.endpoint.place, started.server.python
    for port in sorted({*(known.port for known in record.ports), *start.request.ports}):
        to = Endpoint(place, port, python=python)
        held = hold(start.host, record.name, to, start.context.progress, start.undo)
        record = record.with_port(PortRecord(port, held.local_port))
        told.append(held)
    return record, reports(record, told)
