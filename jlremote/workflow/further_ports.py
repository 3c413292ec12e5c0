"""`jlr forward`: further ports of a session, for TensorBoard or a web app beside Jupyter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from jlremote.errors import Busy, JlrError, NotFound
from jlremote.jupyter.discovery import place_of
from jlremote.jupyter.locate import ContainerGone, Survey, survey
from jlremote.link.client import Link
from jlremote.link.states import State
from jlremote.link.status import PortStatus
from jlremote.ports.endpoint import PortEndpoint
from jlremote.runtimes.contract import Runtime
from jlremote.runtimes.table import runtime_named
from jlremote.storage import sessions
from jlremote.storage.sessions import PortRecord, SessionRecord
from jlremote.workflow import adoption, ports
from jlremote.workflow.context import Context, Progress
from jlremote.workflow.links import link_of
from jlremote.workflow.open import again
from jlremote.workflow.report import PortReport, utc
from jlremote.workflow.undoing import undone_on_failure
from jlremote.workflow.unreached import Unreached, status_of


def add(selector: str | None, port: int, context: Context) -> PortReport:
    """Forward a port of a session's container, on the same local port if that is free.

    It need not be open yet: the report's state tells.

    Raises:
        NotFound: there is no such session, or it was stopped.
        ContainerGone: its container is not there, or does not run.
    """
    record = adoption.chosen(selector, context)
    if not record.forwarded:
        where = f"`{record.host}/{record.name}`"
        raise NotFound(f"the session {where} does not run", hint=again(record))
    link, runtime = link_of(record, context), runtime_named(record.runtime)
    with undone_on_failure() as undo:
        with context.progress.step(f"Look for port {port} of {record.name}"):
            found = survey(link, runtime, record.name)
            to = endpoint(runtime, found, record.name, port)
            held = hold(link, record, to, context.progress, undo)
        sessions.save(with_port(record, PortRecord(port, held.local_port)))
    return _report(held)


def listed(selector: str | None, context: Context) -> list[PortReport]:
    """Return the forwarded ports of a session, each looked at just now.

    Raises:
        NotFound: there is no such session.
    """
    record = adoption.chosen(selector, context)
    if not record.forwarded or not record.ports:
        return []
    link = link_of(record, context)
    found = status_of(link)
    if isinstance(found, Unreached):
        return [_unreached(port, found) for port in record.ports]
    return [_looked_at(link, record, port) for port in record.ports]


def remove(selector: str | None, port: int, context: Context) -> None:
    """Forward a port no more.

    Raises:
        NotFound: there is no such session, or it has no such port.
    """
    record = adoption.chosen(selector, context)
    rest = tuple(known for known in record.ports if known.port != port)
    if rest == record.ports:
        where = f"`{record.host}/{record.name}`"
        raise NotFound(
            f"port {port} of {where} is not forwarded", hint="`jlr forward` lists those that are"
        )
    link_of(record, context).unforward_port(record.name, port)
    sessions.save(replace(record, ports=rest))


def endpoint(runtime: Runtime, found: Survey, name: str, port: int) -> PortEndpoint:
    """Return where a forward of a session's port leads.

    Raises:
        ContainerGone: the survey found no container that runs.
    """
    if found.container is None or not found.container.running:
        raise ContainerGone(f"the container `{name}` is gone or does not run")
    servers = found.findings.servers if found.findings else ()
    python = servers[0].python if servers else ""
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
            wanted = wanted or ports.taken(local, record.host, record.name)
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
        return tuple(_unreached(port, told) for port in record.ports)
    held = {status.endpoint.port: status for status in told}
    return tuple(
        _report(held[port.port]) if port.port in held else _not_held(port, record)
        for port in record.ports
    )


def _candidates(record: SessionRecord, port: int) -> Iterator[int]:
    yield from (known.local_port for known in record.ports if known.port == port)
    yield from ports.further_candidates(port)


def _looked_at(link: Link, record: SessionRecord, port: PortRecord) -> PortReport:
    found = link.check_port(record.name, port.port)
    return _not_held(port, record) if found is None else _report(found)


def _report(status: PortStatus) -> PortReport:
    since = utc(status.since)
    return PortReport(status.endpoint.port, status.local_port, status.state, since, status.detail)


def _not_held(port: PortRecord, record: SessionRecord) -> PortReport:
    """Return the report of a port that did not come back with the link."""
    why = f"it is not forwarded; `jlr forward {record.name} {port.port}` does it"
    return PortReport(port.port, port.local_port, str(State.DOWN), None, why)


def _unreached(port: PortRecord, why: Unreached) -> PortReport:
    return PortReport(port.port, port.local_port, why.state, why.since, why.detail)
