"""The mounts that this laptop has, as far as it can know without asking anybody."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jlremote.errors import Usage
from jlremote.link.client.link import Link
from jlremote.mounts.points import resolved
from jlremote.mounts.system import System, this_system
from jlremote.storage import mounts
from jlremote.storage.mounts import MountRecord


@dataclass(frozen=True)
class MountReport:
    """A mount as it is right now.

    Attributes:
        local: absolute path of the folder here.
        host: what was typed after `ssh`.
        remote: absolute path of the folder on the host.
        session: the session's name.
        read_only: whether nothing can be changed through it.
        state: `up`, the state of a link that is not, `dead` or `unmounted`.
        detail: one sentence that says why, where the state is not `up`.
    """

    local: str
    host: str
    remote: str
    session: str
    read_only: bool
    state: str
    detail: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        return dict(vars(self))


def place(path: str, system: System) -> str:
    """Return the absolute path of a mount point, without looking into any mount.

    Raises:
        Usage: it cannot be one.
    """
    if not path or not path.isprintable():
        raise Usage("a folder's name must not be empty, nor hold control characters")
    points = {point.path for point in system.mounted()}
    local = resolved(path, points)
    for point in points:
        if local.startswith(f"{point}/"):
            raise Usage(f"`{local}` is in a mount itself, that of `{point}`")
    return local


def find(path: str, system: System) -> MountRecord | None:
    """Return the record of the mount at `path`."""
    points = {point.path for point in system.mounted()}
    wanted = resolved(path, points) if path else path
    return next((record for record in mounts.load_all() if record.local == wanted), None)


def is_mounted(record: MountRecord, system: System) -> bool:
    """Return whether something of sshfs is mounted there."""
    return any(point.path == record.local for point in system.mounted())


def is_served(record: MountRecord) -> bool:
    """Return whether its sshfs lives."""
    from jlremote.mounts.process import find as find_processes

    return bool(find_processes(record.name))


def config(record: MountRecord) -> Path | None:
    """Return ssh's `-F` of the mount's link."""
    return None if record.ssh_config is None else Path(record.ssh_config)


def report(record: MountRecord, state: str, detail: str | None = None) -> MountReport:
    """Return what is told of a mount in that state."""
    return MountReport(
        local=record.local,
        host=record.host,
        remote=record.remote,
        session=record.session,
        read_only=record.read_only,
        state=state,
        detail=detail,
    )


def bring_back(link: Link, ssh_config: Path | None) -> None:
    """Let the sshfs of every mount of a host in again: the link that knew them has gone."""
    here = [r for r in mounts.load_all() if (r.host, config(r)) == (link.name, ssh_config)]
    for record in here:
        if is_mounted(record, this_system()) and is_served(record):
            link.mount(record.name)
