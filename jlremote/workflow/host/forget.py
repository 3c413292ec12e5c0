"""`jlr forget`: what the keychain holds for a host is deleted."""

from __future__ import annotations

from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import link_on


def forget(host: str, context: Context) -> tuple[str, ...]:
    """Delete the passwords and passphrases kept for a host and its jump hosts; connects nowhere.

    Returns:
        what was deleted, in words such as `password me@dgx:22`.
    """
    return link_on(host, context).forget()
