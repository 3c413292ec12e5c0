"""The mounts of this laptop: their states, and `jlr mount --unmount`. No mount is looked into."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.links import ASKS_NOTHING, link_of
from jlremote.laptop.sessions import MOUNTS, MountRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import LinkStatus, State
from jlremote.mounts import sshfs
from jlremote.mounts.system import System, resolved, this_system
from jlremote.selection.destruction import Destruction, confirm
from jlremote.text import listed

HOSTS_AT_ONCE = 16
_SHOWN = 5  # programs


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


def unmount(local: str, context: Context, *, force: bool = False, yes: bool = False) -> str:
    """Unmount a folder, with `force` if in use; return its path (`NotFound`; `Busy`: in use)."""
    record = find(local, this_system())
    if record is None:
        raise NotFound(f"jlr has nothing mounted at `{local}`", hint="`jlr mount` shows the mounts")
    if force:
        confirm(Destruction(f"Unmount {record.local}?", _losses(record)), context, yes=yes)
    _unmount(record, context, force=force)
    return record.local


def losses_of_session(host: str, session: str) -> tuple[str, ...]:
    """Name each program that loses a folder of a session when that is unmounted by force."""
    records = (r for r in MOUNTS.load_all() if r.of_session(host, session))
    return tuple(loss for record in records for loss in _losses(record))


def _losses(record: MountRecord) -> tuple[str, ...]:
    system = this_system()
    if record.local not in system.mounted() or not is_served(record):
        return ()
    holders = system.holders(record.local)
    return tuple(f"the mount {record.local}: {holder}" for holder in holders)


def unmount_all(context: Context, *, force: bool = False, yes: bool = False) -> list[str]:
    """Unmount everything, also past a busy one, whose error follows; return the paths."""
    done: list[str] = []
    refused: list[JlrError] = []
    known = MOUNTS.load_all()
    losses = tuple(f"the mount {record.local} of {record.host}" for record in known)
    confirm(Destruction("Unmount all of them?", losses), context, yes=yes)
    for record in known:
        try:
            _unmount(record, context, force=force)
            done.append(record.local)
        except JlrError as error:
            refused.append(error)
    if refused:
        raise refused[0]
    return done


def unmount_session(host: str, session: str, context: Context, *, force: bool) -> list[str]:
    """Unmount the folders of a session; return a sentence for each, with programs that lost it."""
    sentences = []
    for record in filter(lambda one: one.of_session(host, session), MOUNTS.load_all()):
        try:
            users = _unmount(record, context, force=force)
            anyway = f" although it is in use: {_named(users)}" if users else ""
            sentences.append(f"unmounted {record.local}{anyway}")
        except JlrError as error:
            sentences.append(f"left it mounted: {error.message}")
    return sentences


def _unmount(record: MountRecord, context: Context, *, force: bool) -> list[str]:
    from filelock import FileLock  # 20 ms that reports do not need

    with FileLock(MOUNTS.folder() / "lock", mode=0o600):
        return take_away(record, context, force=force)


def take_away(record: MountRecord, context: Context, *, force: bool) -> list[str]:
    """Remove a mount with its sshfs, record and made folder; return who lost it (or `Busy`)."""
    system = this_system()
    users: list[str] = []
    complaint = None
    if record.local in system.mounted():
        complaint = system.unmount(record.local, lazily=False)
    if complaint is not None:
        users = system.holders(record.local)
        complaint = system.unmount(record.local, lazily=True) if force else complaint
    if complaint is not None and record.local in system.mounted():
        raise _refusal(record, complaint, users)
    sshfs.end(record.name, patience=0.0 if system.winfsp else sshfs.END_SECONDS)
    link_of(record, context).unmount(record.name)
    MOUNTS.delete(record)
    for folder in (Path(record.local), *Path(record.local).parents)[: record.made]:
        with suppress(OSError):  # it is not empty, or gone
            folder.rmdir()
    if system.winfsp and not record.made:  # the folder was there before, or it is a drive
        with suppress(OSError):
            Path(record.local).mkdir()
    return users


def _refusal(record: MountRecord, complaint: str, users: list[str]) -> JlrError:
    if "busy" not in complaint.lower():
        return JlrError(f"cannot unmount `{record.local}`: {complaint}")
    return Busy(
        f"`{record.local}` is in use: {_named(users)}",
        hint="leave the folder and close its files, or: "
        f"`jlr mount --unmount {shlex.quote(record.local)} --force`",
    )


def _named(users: list[str]) -> str:
    return listed(users, _SHOWN) or "a program of another user uses it"
