"""The check that Jupyter answers through a forward, and how it authenticates."""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import Busy, JlrError, Unreachable
from jlremote.hosts.links import goes_on
from jlremote.jupyter.api import Access, IdentityRefused, JupyterApi, NoAnswer
from jlremote.jupyter.endpoint import hostname
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus


def wait_for_answer(link: Link, forward: ForwardStatus) -> str:
    """Wait until Jupyter answers through a forward, which proves the whole way.

    Return the name of this machine under which it answers: the session's own, or 127.0.0.1.

    Raises:
        IdentityRefused: Jupyter does not take its own token.
        JlrError: as of `why_silent`, or Jupyter refused.
    """
    try:
        own = hostname(link.name, forward.session)
        with link.waiting():
            return JupyterApi(forward.local_port, forward.server).accepted_name(own)
    except NoAnswer as silent:
        raise why_silent(link, forward, silent) from silent
    except IdentityRefused as refused:
        start = f"`jlr start {link.name} {forward.session}`"
        raise IdentityRefused(
            f"{refused.message}, though the token is the one in its file; an identity provider may "
            "know people by other means, as by a header that a proxy sets",
            hint=f"{start} launches one that takes its token, once you have ended this one",
        ) from refused


def refuse_open(link: Link, forward: ForwardStatus, *, allowed: bool) -> Access:
    """Refuse a server without token and password, unless allowed; return how it authenticates.

    Raises:
        JlrError: it does not, and that is not allowed; the caller releases the forward.
    """
    server, name = forward.server, forward.endpoint.place.name
    access = JupyterApi(forward.local_port, server).access()
    if access is Access.OPEN and not allowed:
        raise JlrError(
            f"the Jupyter server of `{name}` is open to all on `{link.name}`: it asks for neither "
            "token nor password, so every user there can run code as its owner",
            hint=f"end it and run `jlr start {link.name} {name}`, which launches one with a token; "
            f"or accept it: `jlr start {link.name} {name} --allow-unauthenticated`",
        )
    return access


def access_note(access: str, host: str) -> str | None:
    """Return the note about a server that has no token."""
    explained: dict[str, str] = {
        Access.OPEN: f"open to all on `{host}`: Jupyter asks for neither token nor password",
        Access.PASSWORD: "Jupyter asks for a password in the browser, or its identity provider for "
        "what a proxy adds; without it jlr cannot list kernels",
    }
    return explained.get(access)


def silent_host(host: str) -> Unreachable:
    """Return the error of a host that does not answer over a connection that was good."""
    return Unreachable(f"`{host}` does not answer", hint=goes_on(host))


def why_silent(link: Link, forward: ForwardStatus, silent: NoAnswer) -> JlrError:
    """Return why a server did not answer: `Busy`, `NoAnswer` or another error."""
    failure = None
    if not link.answers():
        return silent_host(link.name)
    with suppress(JlrError):  # the link itself may be gone
        known = link.status().forward(forward.session)
        failure = known.failure if known else None
    if failure is None:
        return silent
    if "certificate of Jupyter" in failure:
        start = f"`jlr start {link.name} {forward.endpoint.place.name}`"
        hint = f"end that Jupyter and run {start}, which launches one without TLS"
        return JlrError(failure, hint=hint)
    if "over this connection already" in failure:
        return Busy(
            f"cannot open another relay into a container on `{link.name}`: {failure}",
            hint="`jlr list` shows your sessions: stop one that you do not need, close a terminal "
            "or unmount a folder; each takes one of the ten that an SSH connection has",
        )
    relayed = forward.endpoint.target is not None and forward.endpoint.target.relay is not None
    if forward.server.sock and not relayed:  # another way to the host led there at its launch
        ask = "ask the administrator of `{}` for `AllowStreamLocalForwarding local`"
        end = "`jlr stop {} --force` ends this Jupyter, and the next one listens on a port"
        hint = f"{ask.format(link.name)}; or {end.format(f'{link.name}/{forward.session}')}"
        return NoAnswer(f"{silent.message} ({failure})", hint=hint)
    if "prohibited" in failure:
        return JlrError(
            f"`{link.name}` does not permit connections through its SSH server: {failure}",
            hint="ask its administrator for `AllowTcpForwarding local`, and for `PermitOpen any`"
            " if that is set",
        )
    return NoAnswer(f"{silent.message} ({failure})", hint=silent.hint)
