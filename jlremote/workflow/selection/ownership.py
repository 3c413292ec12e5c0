"""The owner of a session: another user's session is joined only on request."""

from __future__ import annotations

import shlex

from jlremote.errors import JlrError


def refuse(host: str, name: str, owner: str | None, *, agreed: bool) -> None:
    """Refuse to join a session of another user of the host, unless that was `agreed`.

    Raises:
        JlrError: it belongs to `owner`.
    """
    if owner is None or agreed:
        return
    where = shlex.quote(f"{host}/{name}")
    raise JlrError(
        f"`{host}/{name}` belongs to `{owner}`",
        hint=f"`jlr start {shlex.quote(host)} ANOTHER-NAME` makes one of your own; "
        f"`jlr open {where} --as-shared` joins it, if `{owner}` agrees",
    )
