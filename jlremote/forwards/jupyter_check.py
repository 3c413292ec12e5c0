"""The check that Jupyter answers through a forward, and how it authenticates."""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import Busy, JlrError, Unreachable
from jlremote.hosts.links import goes_on
from jlremote.jupyter.api import Access, IdentityRefused, JupyterApi, NoAnswer
from jlremote.jupyter.endpoint import hostname
from jlremote.link.client.link import Link
from jlremote.link.wire.states import ForwardStatus


def wait_for_answer(link: Link, forward: ForwardStatus) -> str:
    """Return the name under which Jupyter answers (`IdentityRefused`, or see `why_silent`)."""
    try:
        own = hostname(link.name, forward.session)
        with link.waiting():
            return JupyterApi(forward.local_port, forward.server).accepted_name(own)
    except NoAnswer as silent:
        raise why_silent(link, forward, silent) from silent
    except IdentityRefused as refused:
        means = "it may log users in by other means, for example by a proxy"
        what = f"{refused.message}, though its file has this token; {means}"
        hint = _anew(link, forward.session, "whose token works")
        raise IdentityRefused(what, hint=hint) from refused


def refuse_open(link: Link, forward: ForwardStatus, *, allowed: bool) -> Access:
    """Return how a server authenticates (`JlrError`: it is open; the caller releases it)."""
    server, name = forward.server, forward.endpoint.place.name
    access = JupyterApi(forward.local_port, server).access()
    if access is Access.OPEN and not allowed:
        accept = f"`jlr start {link.name} {name} --allow-unauthenticated`"
        hint = f"{_anew(link, name, 'with a token')}; or accept it: {accept}"
        what = f"the Jupyter of `{name}` has neither token nor password"
        raise JlrError(f"{what}: every user of `{link.name}` can run code in it", hint=hint)
    return access


def _anew(link: Link, name: str, kind: str) -> str:
    return f"end this Jupyter, then `jlr start {link.name} {name}` launches one {kind}"


def access_note(access: str, host: str) -> str | None:
    """Return the note about a server that has no token."""
    if access == Access.OPEN:
        return f"open to all users of `{host}`: Jupyter has neither token nor password"
    asks = "Jupyter asks for a password in the browser; jlr cannot list its kernels"
    return asks if access == Access.PASSWORD else None


def silent_host(host: str) -> Unreachable:
    """Return the error of a host that does not answer over a connection that was good."""
    return Unreachable(f"`{host}` does not answer", hint=goes_on(host))


def why_silent(link: Link, forward: ForwardStatus, silent: NoAnswer) -> JlrError:
    """Return why a server did not answer: `Busy`, `NoAnswer` or another error."""
    if not link.answers():
        return silent_host(link.name)
    known = None
    with suppress(JlrError):  # the link itself may be gone
        known = link.status().forward(forward.session)
    if known is None or (failure := known.failure) is None:
        return silent
    if "certificate of Jupyter" in failure:
        return JlrError(failure, hint=_anew(link, forward.endpoint.place.name, "without TLS"))
    if "over this connection already" in failure:
        what = f"cannot open another connection into a container on `{link.name}`: {failure}"
        hint = "stop a session that `jlr list` shows, close a terminal or unmount a folder"
        return Busy(what, hint=hint)
    relayed = forward.endpoint.target is not None and forward.endpoint.target.relay is not None
    if forward.server.sock and not relayed:  # another way to the host led there at its launch
        ask = "ask the administrator of `{}` for `AllowStreamLocalForwarding local`"
        end = "`jlr stop {} --force` ends this Jupyter, and the next one listens on a port"
        hint = f"{ask.format(link.name)}; or {end.format(f'{link.name}/{forward.session}')}"
        return NoAnswer(f"{silent.message} ({failure})", hint=hint)
    if "prohibited" in failure:
        what = f"`{link.name}` does not permit connections through its SSH server: {failure}"
        hint = "ask its administrator for `AllowTcpForwarding local`, and for `PermitOpen any`"
        return JlrError(what, hint=f"{hint} if that is set")
    return NoAnswer(f"{silent.message} ({failure})", hint=silent.hint)
