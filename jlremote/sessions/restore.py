"""Restore the forwards and mounts of a host's last link on a new one."""

from __future__ import annotations

from pathlib import Path

from jlremote.errors import JlrError, Unreachable
from jlremote.forwards.local_ports import bring_back
from jlremote.hosts.context import Progress
from jlremote.laptop import sessions
from jlremote.link.client.link import Link
from jlremote.mounts import known_mounts


def restore(link: Link, ssh_config: Path | None, without: str | None, progress: Progress) -> None:
    """Restore the forwards and mounts of a link that was killed or ended for another version.

    The session `without` is left to the caller; `ssh_config` is an absolute path.

    Raises:
        Unreachable: the host cannot be reached.
    """
    config = None if ssh_config is None else str(ssh_config)
    for record in sessions.load_all():
        here = (record.host, record.ssh_config) == (link.name, config)
        if here and record.forwarded and record.name != without:
            try:
                bring_back(link, record)
            except Unreachable:
                raise
            except JlrError as error:
                progress.note(f"`{record.name}` is not forwarded: {error.message}")
    known_mounts.bring_back(link, ssh_config)
