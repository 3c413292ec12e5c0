"""The ssh configuration of a host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jlremote.storage import sessions
from jlremote.workflow.host.context import Context


def known_way(host: str, context: Context) -> Context:
    """Return the context with the ssh configuration of the host's sessions, unless it has one.

    So a host's name means the same to all commands, and only the first needs `--ssh-config`.
    """
    if context.ssh_config is not None:
        return context
    used = [Path(r.ssh_config) for r in sessions.load_all() if r.host == host and r.ssh_config]
    return replace(context, ssh_config=next((path for path in used if path.exists()), None))
