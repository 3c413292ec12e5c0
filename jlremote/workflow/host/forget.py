"""`jlr forget`: delete a host's secrets from the keychain."""

from __future__ import annotations

from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import link_on


def forget(host: str, context: Context) -> tuple[str, ...]:
    """Delete the passwords and passphrases of a host and its jump hosts; do not connect.

    Returns:
        what was deleted, in words: `password me@dgx:22`.
    """
    return link_on(host, context).forget()
