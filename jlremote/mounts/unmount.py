"""`jlr mount --unmount`: unmount folders, dead mounts too, and name the programs that use one."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from jlremote.errors import Busy, JlrError, NotFound
from jlremote.hosts.context import Context
from jlremote.hosts.links import link_of
from jlremote.laptop.sessions import MOUNTS, MountRecord
from jlremote.mounts import known_mounts, sshfs
from jlremote.mounts.system import this_system
from jlremote.selection.destruction import Destruction, confirm
from jlremote.text import listed

_SHOWN = 5


def unmount(local: str, context: Context, *, force: bool = False, yes: bool = False) -> str:
    """Unmount a folder, with `force` if in use; return its path (`NotFound`; `Busy`: in use)."""
    record = known_mounts.find(local, this_system())
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
    if record.local not in system.mounted() or not known_mounts.is_served(record):
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
