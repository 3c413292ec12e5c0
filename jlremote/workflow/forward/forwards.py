"""Forwards held on the first free local port, and put back if a later step fails."""

from __future__ import annotations

from contextlib import ExitStack

from jlremote.errors import Busy, JlrError
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus
from jlremote.ports.endpoint import Endpoint
from jlremote.workflow.forward import local_ports
from jlremote.workflow.host.context import Progress


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

    `exact` is the only local port that will do. `progress` is told of a port other than it had, and
    `undo` puts the forward back as it was.

    Raises:
        Busy: none is free, or not the exact one.
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
    undo.callback(_put_back, link, session, port, before, progress)


def _put_back(
    link: Link, session: str, port: int | None, before: ForwardStatus | None, progress: Progress
) -> None:
    try:
        if before is None:
            link.unforward(session, port)
        else:
            link.forward(session, before.local_port, before.endpoint, seen=False)
    except JlrError as error:
        which = f"`{session}`" if port is None else f"port {port}"
        progress.note(f"the forward of {which} is not as it was before: {error.message}")
