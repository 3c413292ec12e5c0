"""A session's forward on the first local port that is free."""

from __future__ import annotations

from contextlib import ExitStack

from jlremote.errors import Busy, JlrError
from jlremote.jupyter.server import Endpoint
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus
from jlremote.workflow.forward import local_ports
from jlremote.workflow.host.context import Progress


def first_candidate(host: str, name: str) -> int:
    """Return the port that a session would be tried on first."""
    return next(local_ports.candidates(host, name, None), local_ports.FIRST_PORT)


def forwarded(
    link: Link, name: str, exact: int | None, to: Endpoint, progress: Progress, undo: ExitStack
) -> ForwardStatus:
    """Forward the port that a session had, else the first that is free.

    Args:
        link: to the session's host.
        name: the session's name.
        exact: the only port that will do, `None` for any.
        to: where it leads.
        progress: is told when it is another port than it had.
        undo: takes it back.

    Raises:
        Busy: none is free, or not the exact one.
    """
    as_before(link, name, progress, undo)
    wanted = None
    for port in local_ports.candidates(link.name, name, exact):
        try:
            forward = link.forward(name, port, to)
        except Busy:
            wanted = wanted or local_ports.taken(port, link.name, name)
            if exact is not None:
                raise wanted from None
        else:
            if wanted is not None:
                progress.note(f"{wanted.message}; {port} is free and stays yours")
            return forward
    raise Busy("no local port is free", hint=f"ports from {local_ports.FIRST_PORT} on were tried")


def as_before(link: Link, name: str, progress: Progress, undo: ExitStack) -> None:
    """Let `undo` put a session's forward back as it is now, for a browser may be using it.

    Its port is the same again, and it leads to where it led, if that is still there.
    """
    before = link.status(connect=True).forward(name)
    undo.callback(_put_back, link, name, before, progress)


def _put_back(link: Link, name: str, before: ForwardStatus | None, progress: Progress) -> None:
    try:
        if before is None:
            link.unforward(name)
        else:
            link.forward(name, before.local_port, before.endpoint, seen=False)
    except JlrError as error:
        progress.note(f"the forward of `{name}` is not as it was before: {error.message}")
