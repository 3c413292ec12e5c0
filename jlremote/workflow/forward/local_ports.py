"""Which local port a session gets, and who holds one that is taken."""

from __future__ import annotations

from collections.abc import Iterator

from jlremote.errors import Busy
from jlremote.storage import sessions

FIRST_PORT = 8888  # Jupyter's own
PORTS = 100
UNPRIVILEGED = 1024  # below, only the administrator may listen


def candidates(host: str, name: str, exact: int | None) -> Iterator[int]:
    """Give the ports to try for a session: the asked one only, else its own, else free ones.

    Args:
        host: the session's host.
        name: the session's name.
        exact: the port that was asked for.
    """
    if exact is not None:
        yield exact
        return
    own = sessions.find(host, name)
    if own is not None:
        yield own.local_port
    yield from _free_from(FIRST_PORT)


def further_candidates(port: int) -> Iterator[int]:
    """Give the ports to try for a further port of a session: the same number, else the next."""
    lowest = port if port >= UNPRIVILEGED else port + UNPRIVILEGED
    yield from _free_from(lowest)


def _free_from(first: int) -> Iterator[int]:
    """Give ports that are no session's; one stays its session's even while its link is down."""
    reserved = {port for record in sessions.load_all() for port in record.local_ports}
    last = min(first + PORTS, 65536)
    yield from (port for port in range(first, last) if port not in reserved)


def taken(port: int, host: str, name: str) -> Busy:
    """Return the error for a port that is taken, with its holder where that can be known.

    Args:
        port: the port.
        host: the host of the session that wants it.
        name: that session's name.
    """
    holder = _other_session(port, host, name) or _process_on(port)
    by = f" by {holder}" if holder else ""
    return Busy(
        f"port {port} is taken{by}",
        hint="leave `--port` out and the next free port is taken",
    )


def _other_session(port: int, host: str, name: str) -> str | None:
    for record in sessions.load_all():
        itself = (record.host, record.name) == (host, name)
        if port in record.local_ports and record.forwarded and not itself:
            return f"the session `{record.host}/{record.name}`"
    return None


def _process_on(port: int) -> str | None:
    import psutil  # 30 ms that only this rare case should cost

    try:
        connections = psutil.net_connections("tcp")
    except psutil.Error:  # macOS wants root for other users' sockets
        return None
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN
        if listens and connection.laddr and connection.laddr.port == port:
            return _process(connection.pid)
    return None


def _process(pid: int | None) -> str | None:
    import psutil

    try:
        return None if pid is None else f"`{psutil.Process(pid).name()}` (process {pid})"
    except psutil.Error:
        return None
