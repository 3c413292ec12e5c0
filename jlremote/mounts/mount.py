"""`jlr mount`: show a folder of the host as a folder of this laptop."""

from __future__ import annotations

import os
import shlex
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.hosts.context import Context, known_way
from jlremote.hosts.links import connect, link_of
from jlremote.hosts.rollback import undone_on_failure
from jlremote.laptop import sessions
from jlremote.laptop.sessions import MOUNTS, MountRecord, SessionRecord
from jlremote.laptop.typed_place import host_word, resolved
from jlremote.link.client.link import Link
from jlremote.mounts import known_mounts, project_folder, sshfs, unmount
from jlremote.mounts.known_mounts import MountReport
from jlremote.mounts.system import System, this_system
from jlremote.selection import session_selection
from jlremote.text import reason_of

_APPEARS_SECONDS = 15.0


@dataclass(frozen=True)
class MountRequest:
    """`jlr mount LOCAL [SESSION]`, or `jlr mount LOCAL HOST:DIR`."""

    local: str  # the folder of this laptop where it is to appear
    session: str | None = None  # the session whose folder is mounted, the latest by default
    remote: str | None = None  # the folder on the host, the session's project folder by default
    on_host: bool = False  # whether `remote` is a path of the host and not of the container
    read_only: bool = False  # whether nothing can be changed through it
    host: str | None = None  # what `ssh HOST` takes, for a folder `remote` that needs no session


def mount(request: MountRequest, context: Context) -> MountReport:
    """Mount a folder of a session's host; a folder that is already mounted stays as it is.

    Raises:
        Usage: the local folder is taken, or not empty.
        NotFound: there is no such session, or no such folder on the host.
        JlrError: sshfs is missing, or failed.
    """
    system = this_system()
    program = system.sshfs()
    if request.read_only and system.winfsp:
        hint = "leave out `--read-only`, or let the host's own modes refuse changes"
        raise Usage("SSHFS-Win makes no read-only mounts", hint=hint)
    local = known_mounts.place(request.local, system)
    with FileLock(MOUNTS.folder() / "lock", mode=0o600):
        known = known_mounts.find(local, system)
        if _stays(request, local, known, system):
            assert known is not None
            context.progress.note(f"`{local}` is already mounted")
            return MountReport(known, "up")
        if known is None:
            _check_folder(local)
        session = _session(request, known, context)
        link = connect(link_of(session, context), context)
        with context.progress.step("Find the folder"):
            record = _record(request, local, known, link, session, context)
        if (doubt := sshfs.warning(program)) is not None:
            context.progress.note(doubt)
        with (
            context.progress.step(f"Mount {record.host}:{record.remote}"),
            undone_on_failure() as undo,
        ):
            if known is not None:
                undo.callback(MOUNTS.save, known)  # so that `jlr mount LOCAL` means the same again
                unmount.take_away(known, context, force=True)
            _mount(program, record, link, system, undo)
    return MountReport(record, "up")


def _stays(request: MountRequest, local: str, known: MountRecord | None, system: System) -> bool:
    if not any(point.path == local for point in system.mounted()):
        return False
    if known is None:
        mend = "" if system.winfsp else f"`fusermount3 -u {shlex.quote(local)}` unmounts it, or "
        raise Usage(f"another mount is at `{local}`", hint=f"{mend}choose another folder")
    if not known_mounts.is_served(known):
        return False
    other = request.remote is not None or request.session not in (
        *(None, known.session),
        f"{known.host}/{known.session}",
    )
    if other or (request.read_only and not known.read_only):
        raise Usage(
            f"`{local}` already shows `{known.host}:{known.remote}`",
            hint=f"`jlr mount --unmount {shlex.quote(str(local))}` first",
        )
    return True


def _session(request: MountRequest, known: MountRecord | None, context: Context) -> SessionRecord:
    if request.host is not None:
        path = known_way(request.host, context).ssh_config
        config = None if path is None else str(path.resolve())
        return SessionRecord(request.host, "", "none", local_port=0, ssh_config=config)
    if request.session is None and request.remote is None and known is not None:
        if not known.session:
            config = known.ssh_config
            return SessionRecord(known.host, "", "none", local_port=0, ssh_config=config)
        same = sessions.find(known.host, known.session)
        if same is not None:
            return same
    try:
        return session_selection.chosen(request.session, context, by_name=True)
    except NotFound as missing:
        typed = None if request.session is None else resolved(request.session, context.ssh_config)
        if typed is None or typed.host is None or typed.name is not None:
            raise
        folder = f"{host_word(typed.host)}:DIR"
        hint = f"`jlr mount {shlex.quote(request.local)} {folder}` mounts a folder of it"
        raise NotFound(missing.message, hint=hint) from missing


def _record(
    request: MountRequest,
    local: str,
    known: MountRecord | None,
    link: Link,
    session: SessionRecord,
    context: Context,
) -> MountRecord:
    remote, on_host, read_only = request.remote, request.on_host, request.read_only
    if (
        known is not None
        and known.of_session(session.host, session.name)
        and request.session is None
        and remote is None
    ):  # only the local folder was named, so its last mount is meant
        remote, on_host, read_only = known.remote, True, read_only or known.read_only
    folder = project_folder.find(link, session, remote, local, on_host=on_host)
    if not folder.writable and not read_only:
        context.progress.note(f"you may not create files in `{folder.path}` on `{session.host}`")
    return MountRecord(
        local=local,
        remote=folder.path,
        host=session.host,
        session=session.name,
        ssh_config=session.ssh_config,
        read_only=read_only,
        made=0,
    )


def _mount(program: str, record: MountRecord, link: Link, system: System, undo: ExitStack) -> None:
    record = replace(record, made=_prepare(record.local, system, undo))
    undo.callback(MOUNTS.delete, record)
    MOUNTS.save(record)  # before sshfs runs, so that every mount of ours has a record
    undo.callback(link.unmount, record.name)
    link.mount(record.name, record.remote)
    undo.callback(_take_back, record, system)
    command = sshfs.argv(program, record, system.options)
    complaint = sshfs.start(command, sshfs.environment(link.mount_socket))
    if complaint is not None or not _appears(record, system):
        raise _failed(record, link, complaint)


def _appears(record: MountRecord, system: System) -> bool:
    """Wait until it is mounted: WinFsp does it after sshfs has gone to the background."""
    limit = time.monotonic() + _APPEARS_SECONDS
    while not (mounted := known_mounts.is_mounted(record, system)):
        if not known_mounts.is_served(record) or time.monotonic() > limit:
            break
        time.sleep(0.05)
    return mounted


def _take_back(record: MountRecord, system: System) -> None:
    if known_mounts.is_mounted(record, system):
        system.unmount(record.local, lazily=True)
    sshfs.end(record.name)


def _prepare(local: str, system: System, undo: ExitStack) -> int:
    _check_folder(local)
    folder = Path(local)
    if not folder.name:  # a drive
        return 0
    missing = [path for path in (*reversed(folder.parents), folder) if not path.exists()]
    for path in missing:
        undo.callback(_remove_empty, path)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if system.winfsp:  # which makes it, and takes it away
            undo.callback(folder.mkdir, exist_ok=True)
            folder.rmdir()
    except OSError as error:
        raise JlrError(f"cannot create `{local}`: {reason_of(error)}") from error
    return len(missing)


def _check_folder(local: str) -> None:
    folder = Path(local)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise Usage(f"`{local}` is a file", hint="choose a folder")
    with os.scandir(folder) as entries:
        if any(entries):
            raise Usage(
                f"`{local}` is not empty, and the mount would hide what is in it",
                hint="choose another folder",
            )


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # it was not created, or is in use
        folder.rmdir()


def _failed(record: MountRecord, link: Link, complaint: str | None) -> JlrError:
    status = link.status().mount(record.name)
    reason = (status.failure if status else None) or complaint or "no reason given"
    hint = None
    if "fusermount" in reason and "not permitted" in reason:
        hint = "see `/etc/fuse.conf`: the administrator may have closed FUSE to users"
    failure = NotFound if "no such file" in reason.lower() else JlrError
    return failure(f"cannot mount `{record.host}:{record.remote}`: {reason}", hint=hint)
