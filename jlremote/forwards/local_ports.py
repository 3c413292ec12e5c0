"""Local ports of sessions: choose one, hold a forward on it, and restore the forward."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from jlremote.errors import Busy, JlrError, NotFound
from jlremote.forwards.jupyter_check import refuse_open
from jlremote.hosts import halted
from jlremote.hosts.context import Progress
from jlremote.hosts.rollback import undone_on_failure
from jlremote.jupyter.api import NoAnswer
from jlremote.jupyter.endpoint import Endpoint, hostname
from jlremote.jupyter.locate import server_endpoint
from jlremote.jupyter.survey import gone, survey
from jlremote.laptop import sessions
from jlremote.laptop.sessions import PortOwner, SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import ForwardStatus
from jlremote.place.host.addresses import LOCALHOST
from jlremote.place.runtimes.place import of_container
from jlremote.place.runtimes.table import runtime_named, runtime_of
from jlremote.text import reason_of

FIRST_PORT = 8888  # Jupyter's own
PORTS = 100
_OF_A_LINK = "a connection of jlr"
UNPRIVILEGED = 1024  # below, only the administrator may listen


def candidates(host: str, session: str, port: int | None, exact: int | None) -> Iterator[int]:
    """Yield the local ports to try: the `exact` one only, else those it had, then new ones.

    When all of the range have belonged to sessions, those of stopped ones follow, the oldest first.
    `port` is a further port of the session, `None` for its Jupyter server.
    """
    if exact is not None:
        yield exact
        return
    owners = _owners()
    own = [n for n, owner in owners.items() if owner == PortOwner(n, host, session, port)]
    yield from own
    lowest = first_port(port)
    numbers = range(lowest, min(lowest + PORTS, 65536))
    yield from (n for n in numbers if n not in owners)
    kept = {n for record in sessions.load_all() if record.forwarded for n in record.local_ports}
    yield from (n for n in reversed(owners) if n in numbers and n not in kept.union(own))


def first_candidate(host: str, session: str) -> int:
    """Return the local port on which a session would be tried first."""
    return next(candidates(host, session, None, None), FIRST_PORT)


def first_port(port: int | None) -> int:
    """Return the first local port to try: a further port's own number, where that is allowed."""
    if port is None:
        return FIRST_PORT
    return port if port >= UNPRIVILEGED else port + UNPRIVILEGED


def claim(owner: PortOwner, undo: ExitStack) -> PortOwner | None:
    """Record the owner of a local port; return the former one, if it was another."""
    former = _owners().get(owner.local_port)
    sessions.save_port_owner(owner)
    if former == owner:
        return None
    if former is None:
        undo.callback(sessions.PORT_OWNERS.delete, owner)
    else:
        undo.callback(sessions.save_port_owner, former)
    return former


def check_owner(owner: PortOwner) -> None:
    """Raise `Busy` if another session has taken a local port while its owner had no link."""
    now = _owners().get(owner.local_port)
    if now is not None and now != owner:
        hint = f"`jlr start {owner.host} {owner.name}` takes another port"
        raise Busy(f"port {owner.local_port} belongs to {now.in_words} now", hint=hint)


def explained(former: PortOwner, site: str) -> str:
    """Return the note about a port that another session had; `site` is its new origin."""
    had = f"port {former.local_port} belonged to {former.in_words}, whose pages may have left a"
    what = "program in the browser; if you do not trust them, delete the browser's site data of"
    return f"{had} {what} `{site}`"


def _owners() -> dict[int, PortOwner]:
    owners = {known.local_port: known for known in sessions.PORT_OWNERS.load_all()}
    for record in sessions.load_all():
        further = ((known.local_port, known.port) for known in record.ports)
        for local, port in ((record.local_port, None), *further):
            owners.setdefault(local, PortOwner(local, record.host, record.name, port))
    return owners


def taken(port: int, host: str, name: str) -> Busy:
    """Return the error for a port that the session HOST/NAME cannot have, with its holder."""
    others = (
        f"the session `{record.selector}`"
        for record in sessions.load_all()
        if port in record.local_ports
        and record.forwarded
        and (record.host, record.name) != (host, name)
    )
    holder = next(others, None) or _process_on(port)
    by = f" by {holder}" if holder else ""
    return Busy(f"port {port} is in use{by}", hint="leave out `--port` to take the next free port")


def check_free(port: int, host: str, name: str | None) -> None:
    """Check that a local port is free, or HOST/NAME's (`Busy`: taken, `JlrError`: refused)."""
    try:
        socket.create_server((LOCALHOST, port)).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            what = f"cannot listen on port `{port}` of this machine: {reason_of(error)}"
            raise JlrError(what, hint="take a port from 1024 on; lower ones are root's") from error
        record = sessions.find(host, name) if name is not None else None
        if record is not None and record.forwarded and port == record.local_port:
            return
        busy = taken(port, host, name or "")
        if _OF_A_LINK not in busy.message:  # else the session may have it, and no record any more
            raise busy from None


def _process_on(port: int) -> str | None:
    import psutil  # 30 ms, which only this rare case should cost

    with suppress(psutil.Error):  # macOS wants root for other users' sockets
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if listens and (pid := connection.pid):
                process = psutil.Process(pid)
                is_link = "jlremote.link" in process.cmdline()
                name = _OF_A_LINK if is_link else f"`{process.name()}`"
                return f"{name} (process {pid})"
    return None


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

    `exact` is the only local port that will do. `progress` gets a note where the port is another
    than before, or was another session's; `undo` puts the forward back as it was. If none is free,
    or not the exact one, raise `Busy`.
    """
    port = to.further_port
    put_back_later(link, session, port, progress, undo)
    refused = None
    for local in candidates(link.name, session, port, exact):
        try:
            forward = link.forward(session, local, to)
        except Busy:
            refused = refused or taken(local, link.name, session)
            if exact is not None:
                raise refused from None
        else:
            if refused is not None:
                progress.note(f"{refused.message}; using {local}")
            if former := claim(PortOwner(local, link.name, session, port), undo):
                progress.note(explained(former, f"{hostname(link.name, session, port)}:{local}"))
            return forward
    raise Busy("no local port is free", hint=f"ports from {first_port(port)} on were tried")


def put_back_later(
    link: Link, session: str, port: int | None, progress: Progress, undo: ExitStack
) -> None:
    """Let `undo` put a forward back as it is now, for a browser may be using it."""
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
    return Endpoint(of_container(runtime, container), port, on_host=True)


def bring_back(link: Link, record: SessionRecord) -> ForwardStatus:
    """Forward a session and its further ports again on their local ports.

    The further ports come back also where Jupyter is dead. Raise `NotFound` if its container is not
    there; `JlrError` if it does not run (see `halted.running`), no Jupyter server runs in it (see
    `survey.gone`), or the server there has neither token nor password; `Busy` if the local port is
    taken, or another session's now.
    """
    runtime = runtime_of(record)
    surveyed = survey(link, runtime, record.name)
    container = halted.running(record, runtime, surveyed.container)
    if surveyed.whose is not None and not record.shared:
        what = f"the container `{record.name}` now belongs to `{surveyed.whose}`"
        raise NotFound(what, state="container-gone")
    for port in record.ports:
        with suppress(Busy):  # `jlr forward` tells that it is not forwarded
            check_owner(PortOwner(port.local_port, record.host, record.name, port.port))
            place = of_container(runtime, container)
            to = host_port(link, port.port) if port.on_host else Endpoint(place, port.port)
            link.forward(record.name, port.local_port, to)
    server = surveyed.server_on(record.server)
    if server is None:
        raise gone(record.host, container, surveyed.findings)
    check_owner(PortOwner(record.local_port, record.host, record.name, None))
    with undone_on_failure() as undo:
        undo.callback(link.unforward, record.name)
        to = server_endpoint(runtime, container, server)
        try:
            forward = link.forward(record.name, record.local_port, to)
        except Busy:
            busy = taken(record.local_port, record.host, record.name)
            another = f"`jlr start {record.host} {record.name}` takes another port"
            busy.hint = f"{another}; or end the program that holds this one"
            raise busy from None
        if not forward.server.token:  # it may be another server than before
            with suppress(NoAnswer):
                refuse_open(link, forward, allowed=record.open_allowed)
    if record.notify:
        link.notify(record.name, wanted=True)
    return forward
