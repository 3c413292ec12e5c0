"""By which ssh configuration a host is reached."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jlremote.storage import sessions
from jlremote.workflow.host.context import Context


def known_way(host: str, context: Context) -> Context:
    """Return the context for a host: by the configuration of its sessions, unless one was told.

    A host's name means the same to all commands, whichever of them was given `--ssh-config`.
    """
    if context.ssh_config is not None:
        return context
    used = [Path(r.ssh_config) for r in sessions.load_all() if r.host == host and r.ssh_config]
    return replace(context, ssh_config=next((path for path in used if path.exists()), None))
