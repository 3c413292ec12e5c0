"""The record of a session that has just started, with its further ports."""

from __future__ import annotations

from jlremote.link.wire.status import ForwardStatus
from jlremote.ports.endpoint import Endpoint
from jlremote.runtimes.contract import Container
from jlremote.storage import sessions
from jlremote.storage.sessions import PortRecord, SessionRecord
from jlremote.workflow.container.start_context import StartContext
from jlremote.workflow.forward.forwards import hold
from jlremote.workflow.forward.port_report import PortReport, reports


def remember(
    start: StartContext, container: Container, forward: ForwardStatus
) -> tuple[SessionRecord, tuple[PortReport, ...]]:
    """Save the session's record, and forward its further ports: the known and the new ones.

    Raises:
        Busy: no local port is free for one of them.
        JlrError: the record cannot be written.
    """
    record, held = _record(start, container, forward), []
    for port in sorted({*(known.port for known in record.ports), *start.request.ports}):
        to = Endpoint(forward.endpoint.place, port, python=forward.server.python)
        status = hold(start.host, record.name, to, start.context.progress, start.undo)
        record = record.with_port(PortRecord(port, status.local_port))
        held.append(status)
    sessions.save(record)
    return record, reports(record, held)


def _record(start: StartContext, container: Container, forward: ForwardStatus) -> SessionRecord:
    config, known = start.context.ssh_config, start.known
    typed = None if start.request.container == start.name else start.request.container
    return SessionRecord(
        host=start.request.host,
        name=start.name,
        typed=typed or (known.typed if known else None),
        runtime=start.runtime.name,
        local_port=forward.local_port,
        ssh_config=None if config is None else str(config.resolve()),
        image=container.image,
        gpus=container.gpus,
        ports=known.ports if known else (),
        open_allowed=start.open_allowed,
    )
