"""A session's forward on the first local port that is free."""

from __future__ import annotations

from jlremote.errors import Busy
from jlremote.jupyter.server import Endpoint
from jlremote.link.client import Link
from jlremote.link.status import ForwardStatus
from jlremote.workflow import ports
from jlremote.workflow.context import Progress


def first_candidate(host: str, name: str) -> int:
    """Return the port that a session would be tried on first."""
    return next(ports.candidates(host, name, None), ports.FIRST_PORT)


def forwarded(
    link: Link, name: str, exact: int | None, to: Endpoint, progress: Progress
) -> ForwardStatus:
    """Forward the port that a session had, else the first that is free.

    Args:
        link: to the session's host.
        name: the session's name.
        exact: the only port that will do, `None` for any.
        to: where it leads.
        progress: is told when it is another port than it had.

    Raises:
        Busy: none is free, or not the exact one.
    """
    wanted = None
    for port in ports.candidates(link.name, name, exact):
        try:
            forward = link.forward(name, port, to)
        except Busy:
            wanted = wanted or ports.taken(port, link.name, name)
            if exact is not None:
                raise wanted from None
        else:
            if wanted is not None:
                progress.note(f"{wanted.message}; {port} is free and stays yours")
            return forward
    raise Busy("no local port is free", hint=f"ports from {ports.FIRST_PORT} on were tried")
