"""Does the server behind a forward answer, and whom? And if not, why."""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import Busy, JlrError
from jlremote.jupyter.api import Access, AccessRefused, JupyterApi, NoAnswer
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus


class OpenToAll(JlrError):
    """The server lets everybody run code, and nobody has said that this is meant so."""


def wait_for_answer(link: Link, forward: ForwardStatus) -> None:
    """Return once Jupyter has answered through a forward, which proves the whole way.

    Raises:
        NoAnswer: it did not; with the reason, where the link knows one.
        Busy: too many ways into containers are open.
        JlrError: the host's SSH server does not permit the way there, or Jupyter refused.
    """
    try:
        with suppress(AccessRefused):  # it answers, and its password is the person's affair
            JupyterApi(forward.local_port, forward.server).status()
    except NoAnswer as silent:
        raise _explained(link, forward, silent) from silent


def refuse_open(link: Link, forward: ForwardStatus, *, allowed: bool) -> Access:
    """Refuse a server that lets everybody in, unless that is allowed.

    Returns:
        What the server asks for; the caller takes the forward back if it is refused.

    Raises:
        OpenToAll: nothing, and that is not allowed.
    """
    server, name = forward.server, forward.session
    access = JupyterApi(forward.local_port, server).access()
    if access is Access.OPEN and not allowed:
        raise OpenToAll(
            f"the Jupyter server of `{name}` is open to all on `{link.name}`: it asks for neither "
            "token nor password, and whoever reaches its port can run code as its user",
            hint="end it, and `jlr start` launches one with a token; or have it as it is: "
            f"`jlr start {link.name} {name} --allow-unauthenticated`",
        )
    return access


def of_access(access: str, host: str) -> str | None:
    """Return what a person must know of a server that has no token."""
    explained: dict[str, str] = {
        Access.OPEN: f"open to all on `{host}`: Jupyter asks for neither token nor password",
        Access.PASSWORD: "Jupyter asks for its password in the browser; jlr has none, so kernels "
        "are unknown",
    }
    return explained.get(access)


def _explained(link: Link, forward: ForwardStatus, silent: NoAnswer) -> JlrError:
    failure = None
    with suppress(JlrError):  # the link itself may be gone
        known = link.status().forward(forward.session)
        failure = known.failure if known else None
    if failure is None:
        return silent
    if "prohibited" in failure:
        return JlrError(
            f"`{link.name}` does not permit connections through its SSH server: {failure}",
            hint="ask its administrator for `AllowTcpForwarding local`, and for `PermitOpen any`"
            " if that is set",
        )
    if "over this connection already" in failure:
        return Busy(
            f"`{link.name}` gives no further way into a container: {failure}",
            hint="each takes one of the ten sessions that an SSH server gives; stop a session that "
            "you do not need (`jlr list`, `jlr stop`), close a terminal or unmount a folder",
        )
    return NoAnswer(f"{silent.message} ({failure})", hint=silent.hint)
