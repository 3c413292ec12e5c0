"""Does the server behind a forward answer? And if not, why."""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import JlrError
from jlremote.jupyter.api import AccessRefused, JupyterApi, NoAnswer
from jlremote.link.client import Link
from jlremote.link.status import ForwardStatus


def wait_for_answer(link: Link, forward: ForwardStatus) -> None:
    """Return once Jupyter has answered through a forward, which proves the whole way.

    Raises:
        NoAnswer: it did not; with the reason, where the link knows one.
        JlrError: the host's SSH server does not permit the way there, or Jupyter refused.
    """
    try:
        with suppress(AccessRefused):  # it answers, and its password is the person's affair
            JupyterApi(forward.local_port, forward.endpoint.server).status()
    except NoAnswer as silent:
        raise _explained(link, forward, silent) from silent


def _explained(link: Link, forward: ForwardStatus, silent: NoAnswer) -> JlrError:
    failure = None
    with suppress(JlrError):  # the link itself may be gone
        known = link.status().forward(forward.name)
        failure = known.failure if known else None
    if failure is None:
        return silent
    if "prohibited" in failure:
        return JlrError(
            f"`{link.name}` does not permit connections through its SSH server: {failure}",
            hint="ask its administrator for `AllowTcpForwarding local`, and for `PermitOpen any`"
            " if that is set",
        )
    return NoAnswer(f"{silent.message} ({failure})", hint=silent.hint)
