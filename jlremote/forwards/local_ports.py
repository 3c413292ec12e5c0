"""Local ports: those that a session gets, their owners, and the holder of one that is taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress

from jlremote.errors import Busy
from jlremote.laptop import sessions
from jlremote.laptop.sessions import Owner, PortOwner

FIRST_PORT = 8888  # Jupyter's own
PORTS = 100
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
    own = [local for local, owner in owners.items() if owner == (host, session, port)]
    yield from own
    lowest = first(port)
    numbers = range(lowest, min(lowest + PORTS, 65536))
    yield from (n for n in numbers if n not in owners)
    kept = {n for record in sessions.load_all() if record.forwarded for n in record.local_ports}
    yield from (n for n in reversed(owners) if n in numbers and n not in kept.union(own))


def claim(local: int, host: str, session: str, port: int | None, undo: ExitStack) -> Owner | None:
    """Record the owner of a local port; return the former one, if it was another.

    Raises:
        JlrError: the record cannot be written.
    """
    owner = (host, session, port)
    former = _owners().get(local)
    sessions.save_port_owner(PortOwner(local, *owner))
    if former == owner:
        return None
    if former is None:
        undo.callback(sessions.PORT_OWNERS.delete_key, str(local))
    else:
        undo.callback(sessions.save_port_owner, PortOwner(local, *former))
    return former


def check_owner(local: int, host: str, session: str, port: int | None) -> None:
    """Check that a local port has not become another's while the session had no link.

    Raises:
        Busy: it has.
    """
    owner = _owners().get(local)
    if owner is not None and owner != (host, session, port):
        raise Busy(
            f"port {local} belongs to {_in_words(owner)} now",
            hint=f"`jlr start {host} {session}` takes another port",
        )


def explained(local: int, former: Owner, site: str) -> str:
    """Return what a person should know of a port that was another's; `site` is its new origin."""
    return (
        f"port {local} belonged to {_in_words(former)}, whose pages may have left a program in the "
        f"browser; if you do not trust them, delete the browser's site data of `{site}`"
    )


def _in_words(owner: Owner) -> str:
    host, session, port = owner
    return f"`{host}/{session}`" if port is None else f"port {port} of `{host}/{session}`"


def _owners() -> dict[int, Owner]:
    """Return the owner of each local port, the latest used port first."""
    owners: dict[int, Owner] = {
        known.local_port: known.owner for known in sessions.PORT_OWNERS.load_all()
    }
    for record in sessions.load_all():
        owners.setdefault(record.local_port, (record.host, record.name, None))
        for known in record.ports:
            owners.setdefault(known.local_port, (record.host, record.name, known.port))
    return owners


def first(port: int | None) -> int:
    """Return the first local port to try: a further port's own number, where that is allowed."""
    if port is None:
        return FIRST_PORT
    return port if port >= UNPRIVILEGED else port + UNPRIVILEGED


def first_candidate(host: str, session: str) -> int:
    """Return the local port on which a session would be tried first."""
    return next(candidates(host, session, None, None), FIRST_PORT)


def taken(port: int, host: str, name: str) -> Busy:
    """Return the error for a port that the session HOST/NAME cannot have, with its holder."""
    holder = _other_session(port, host, name) or _process_on(port)
    by = f" by {holder}" if holder else ""
    return Busy(f"port {port} is taken{by}", hint="leave out `--port` to take the next free port")


def _other_session(port: int, host: str, name: str) -> str | None:
    for record in sessions.load_all():
        itself = (record.host, record.name) == (host, name)
        if port in record.local_ports and record.forwarded and not itself:
            return f"the session `{record.host}/{record.name}`"
    return None


def _process_on(port: int) -> str | None:
    import psutil  # 30 ms, which only this rare case should cost

    with suppress(psutil.Error):  # macOS wants root for other users' sockets
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if listens and (pid := connection.pid):
                process = psutil.Process(pid)
                is_link = "jlremote.link" in process.cmdline()
                name = "a connection of jlr" if is_link else f"`{process.name()}`"
                return f"{name} (process {pid})"
    return None
