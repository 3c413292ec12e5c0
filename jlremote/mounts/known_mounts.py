"""The mounts of this laptop and their states. No mount is looked into."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jlremote.errors import JlrError, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.links import ASKS_NOTHING, link_of
from jlremote.laptop.sessions import MOUNTS, MountRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import LinkStatus, State
from jlremote.mounts import sshfs
from jlremote.mounts.system import System, resolved, this_system

HOSTS_AT_ONCE = 16


@dataclass(frozen=True)
class MountReport:
    """A mount as it is right now."""

    record: MountRecord
    state: str  # `up`, the state of a link that is not up, `dead` or `unmounted`
    detail: str | None = None  # one sentence with the reason, where the state is not `up`

    def to_json(self) -> dict[str, Any]:
        names = ("local", "host", "remote", "session", "read_only")
        facts = {name: getattr(self.record, name) for name in names}
        told = {"state": self.state, "detail": self.detail}
        return facts | told | {"session": self.record.session or None}


def reports(context: Context, *, connect: bool = True) -> list[MountReport]:
    """Return a report of every mount; with `connect` links that are gone are started again."""
    from concurrent.futures import ThreadPoolExecutor

    records = MOUNTS.load_all()
    if not records:
        return []
    quiet = replace(context, asker=ASKS_NOTHING)
    links = {(record.host, record.ssh_config): record for record in records}
    with ThreadPoolExecutor(HOSTS_AT_ONCE) as pool:
        statuses = pool.map(lambda record: _status(record, quiet, connect=connect), links.values())
        by_link = dict(zip(links, statuses, strict=True))
    system = this_system()
    return [MountReport(r, *_state(r, system, by_link[r.host, r.ssh_config])) for r in records]


def _status(record: MountRecord, context: Context, *, connect: bool) -> LinkStatus | None:
    link = link_of(record, context)
    with suppress(JlrError):
        return link.status()
    if connect:
        with suppress(JlrError):
            return link.status(connect=True)
    return None


def _state(record: MountRecord, system: System, link: LinkStatus | None) -> tuple[str, str | None]:
    again = f"`jlr mount {shlex.quote(str(record.local))}` mounts it again"
    if record.local not in system.mounted():
        return "unmounted", f"unmounted without jlr, or this machine was restarted; {again}"
    if not is_served(record):
        return "dead", f"its sshfs has ended; {again}"
    if link is None:
        return State.DOWN, f"there is no link to {record.host}"
    if link.state != State.UP:
        return link.state, link.detail
    held = link.mount(record.name)
    if held is None:
        return State.DOWN, f"the link does not know it; {again}"
    if held.failure is not None and not held.connected:
        return State.DOWN, f"the host refuses it: {held.failure}"
    return State.UP, None


def place(path: str, system: System) -> str:
    """Return the absolute path of a mount point, without a look into any mount (or `Usage`)."""
    if not path or not path.isprintable():
        raise Usage("a folder's name must not be empty or contain control characters")
    points = system.mounted()
    local = resolved(path, points)
    for point in points:
        if local.startswith(f"{point}/"):
            raise Usage(f"cannot mount at `{local}`: it lies in the mount `{point}`")
    return local


def find(path: str, system: System) -> MountRecord | None:
    """Return the record of the mount at `path`."""
    local = resolved(path, system.mounted()) if path else path
    return next((record for record in MOUNTS.load_all() if record.local == local), None)


def is_served(record: MountRecord) -> bool:
    """Return whether the mount's sshfs runs."""
    return bool(sshfs.processes(record.name))


def bring_back(link: Link, ssh_config: Path | None) -> None:
    """Register each mount of a host with its new link, so that its sshfs can connect again."""
    config = None if ssh_config is None else str(ssh_config)
    for record in MOUNTS.load_all():
        here = (record.host, record.ssh_config) == (link.name, config)
        if here and record.local in this_system().mounted() and is_served(record):
            link.mount(record.name, record.remote)
