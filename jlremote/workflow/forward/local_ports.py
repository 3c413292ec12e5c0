"""Local ports: the ones that a session gets, and the holder of one that is taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from jlremote.errors import Busy
from jlremote.storage import sessions

FIRST_PORT = 8888  # Jupyter's own
PORTS = 100
UNPRIVILEGED = 1024  # below, only the administrator may listen


def candidates(host: str, session: str, port: int | None, exact: int | None) -> Iterator[int]:
    """Yield the local ports to try: the `exact` one only, else the one it had, else free ones.

    `port` is a further port of the session, `None` for its Jupyter server.
    """
    if exact is not None:
        yield exact
        return
    record = sessions.find(host, session)
    if record is not None and port is None:
        yield record.local_port
    elif record is not None:
        yield from (known.local_port for known in record.ports if known.port == port)
    # A port stays its session's even while its link is down.
    reserved = {local for record in sessions.load_all() for local in record.local_ports}
    lowest = first(port)
    yield from (n for n in range(lowest, min(lowest + PORTS, 65536)) if n not in reserved)


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
                return f"`{psutil.Process(pid).name()}` (process {pid})"
    return None
