"""Forwards held on the first free local port, put back if a later step fails, and restored."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from jlremote.errors import Busy, JlrError
from jlremote.forwards import local_ports
from jlremote.forwards.jupyter_check import refuse_open
from jlremote.hosts import halted
from jlremote.hosts.context import Progress
from jlremote.hosts.rollback import undone_on_failure
from jlremote.jupyter.api import NoAnswer
from jlremote.jupyter.ports.endpoint import Endpoint, Place
from jlremote.jupyter.ports.locate import place_of, server_endpoint
from jlremote.jupyter.ports.origins import hostname
from jlremote.jupyter.survey import ContainerGone, gone, survey
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus
from jlremote.place.runtimes.table import runtime_named, runtime_of


def hold(
    link: Link,
    session: str,
    to: Endpoint,
    progress: Progress,
    undo: ExitStack,
    *,
    exact: int | None = None,
) -> ForwardStatus:
    """Forward the local port that the session had for it, else the first that is free.

    `exact` is the only local port that will do. `progress` is told of a port other than it had, or
    that was another session's, and `undo` puts the forward back as it was.

    Raises:
        Busy: none is free, or not the exact one.
        JlrError: the port's owner cannot be recorded.
    """
    port = to.further_port
    put_back_later(link, session, port, progress, undo)
    wanted = None
    for local in local_ports.candidates(link.name, session, port, exact):
        try:
            forward = link.forward(session, local, to)
        except Busy:
            wanted = wanted or local_ports.taken(local, link.name, session)
            if exact is not None:
                raise wanted from None
        else:
            if wanted is not None:
                progress.note(f"{wanted.message}; {local} is free and stays yours")
            if former := local_ports.claim(local, link.name, session, port, undo):
                site = f"{hostname(link.name, session, port)}:{local}"
                progress.note(local_ports.explained(local, former, site))
            return forward
    first = local_ports.first(port)
    raise Busy("no local port is free", hint=f"ports from {first} on were tried")


def put_back_later(
    link: Link, session: str, port: int | None, progress: Progress, undo: ExitStack
) -> None:
    """Let `undo` put a forward back as it is now, for a browser may be using it.

    Its local port is the same again, and it leads to where it led, if that is still there.
    """
    before = link.status(connect=True).forward(session, port)

    def put_back() -> None:
        try:
            if before is None:
                link.unforward(session, port)
            else:
                link.forward(session, before.local_port, before.endpoint, seen=False)
        except JlrError as error:
            which = f"`{session}`" if port is None else f"port {port}"
            progress.note(f"cannot restore the forward of {which}: {error.message}")

    undo.callback(put_back)


def host_port(link: Link, port: int) -> Endpoint:
    """Return the endpoint of a host's own port, which no session's container has."""
    runtime = runtime_named("none")
    container = runtime.read(link.name, link.run(runtime.describe(link.name)))
    assert container is not None, "a host is always there"
    return Endpoint(place_of(runtime, container), port, on_host=True)


def bring_back(link: Link, record: SessionRecord) -> ForwardStatus:
    """Forward a session and its further ports again on their local ports.

    Raises:
        ContainerGone: its container is not there.
        JlrError: it does not run; see `halted.running`.
        JupyterDead: no Jupyter server runs in it.
        JupyterStopped: it was stopped.
        IdleStopped: it has ended because it was idle.
        Busy: the local port is taken, or another session's now.
        JlrError: the server that runs there now has neither token nor password.
    """
    runtime = runtime_of(record)
    found = survey(link, runtime, record.name)
    container = halted.running(record, runtime, found.container)
    if found.whose is not None and not record.shared:
        raise ContainerGone(f"the container `{record.name}` now belongs to `{found.whose}`")
    _bring_ports_back(link, record, place_of(runtime, container))
    server = found.server_on(record.server)
    if server is None:
        raise gone(record.host, container, found.findings)
    to = server_endpoint(runtime, container, server)
    local_ports.check_owner(record.local_port, record.host, record.name, None)
    with undone_on_failure() as undo:
        undo.callback(link.unforward, record.name)
        try:
            forward = link.forward(record.name, record.local_port, to)
        except Busy as busy:
            taken = local_ports.taken(record.local_port, record.host, record.name)
            another = f"`jlr start {record.host} {record.name}` takes another port"
            raise Busy(
                taken.message, hint=f"{another}; or end the program that holds this one"
            ) from busy
        if not forward.server.token:  # it may be another server than before
            with suppress(NoAnswer):
                refuse_open(link, forward, allowed=record.open_allowed)
    if record.notify:
        link.notify(record.name, wanted=True)
    return forward


def _bring_ports_back(link: Link, record: SessionRecord, place: Place) -> None:
    """Forward a session's further ports again, also if Jupyter is dead."""
    for port in record.ports:
        with suppress(Busy):  # `jlr forward` tells that it is not forwarded
            local_ports.check_owner(port.local_port, record.host, record.name, port.port)
            there = host_port(link, port.port) if port.on_host else Endpoint(place, port.port)
            link.forward(record.name, port.local_port, there)
