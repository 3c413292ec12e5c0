"""`jlr mount`: show a folder of the host as a folder of this laptop."""

from __future__ import annotations

import os
import posixpath
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
from jlremote.jupyter.survey import survey
from jlremote.laptop import sessions
from jlremote.laptop.sessions import MOUNTS, MountRecord, SessionRecord
from jlremote.laptop.typed_place import host_word, resolved
from jlremote.link.client.link import Link
from jlremote.mounts import known_mounts, sshfs
from jlremote.mounts.known_mounts import MountReport
from jlremote.mounts.system import System, this_system
from jlremote.place.host.contract import run_script
from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.table import runtime_of
from jlremote.selection import session_selection
from jlremote.text import one_line, reason_of
from jlremote.untrusted import Refused, absolute_path

_APPEARS_SECONDS = 15.0
_MISSING, _CLOSED = 3, 4

# `pwd -P` resolves symbolic links, so that sshfs need not follow them.
_LOOK = f"""\
CDPATH=
[ -d "$folder" ] || exit {_MISSING}
cd -- "$folder" && [ -r . ] || exit {_CLOSED}
if [ -w . ]; then echo writable; else echo closed; fi
pwd -P
"""


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
    """Mount a folder of a session's host, unless it is (`Usage`: `local` is taken; `NotFound`)."""
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
        step = context.progress.step(f"Mount {record.host}:{record.remote}")
        with step, undone_on_failure() as undo:
            if known is not None:
                undo.callback(MOUNTS.save, known)  # so that `jlr mount LOCAL` means the same again
                known_mounts.take_away(known, context, force=True)
            _mount(program, record, link, system, context, undo)
    return MountReport(record, "up")


def _stays(request: MountRequest, local: str, known: MountRecord | None, system: System) -> bool:
    if local not in system.mounted():
        return False
    if known is None:
        mend = "" if system.winfsp else f"`fusermount3 -u {shlex.quote(local)}` unmounts it, or "
        raise Usage(f"another mount is at `{local}`", hint=f"{mend}choose another folder")
    if not known_mounts.is_served(known):
        return False
    names = (None, known.session, f"{known.host}/{known.session}")
    other = request.remote is not None or request.session not in names
    if other or (request.read_only and not known.read_only):
        what = f"`{local}` already shows `{known.host}:{known.remote}`"
        raise Usage(what, hint=f"`jlr mount --unmount {shlex.quote(str(local))}` first")
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
        if (same := sessions.find(known.host, known.session)) is not None:
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
    only_local = request.session is None and remote is None
    if only_local and known is not None and known.of_session(session.host, session.name):
        remote, on_host, read_only = known.remote, True, read_only or known.read_only
    path, writable = find(link, session, remote, local, on_host=on_host)
    if not writable and not read_only:
        context.progress.note(f"you may not create files in `{path}` on `{session.host}`")
    place = (session.host, session.name, session.ssh_config)
    return MountRecord(local, path, *place, read_only=read_only, made=0)


def find(
    link: Link, session: SessionRecord, remote: str | None, local: str, *, on_host: bool
) -> tuple[str, bool]:
    """Return the path of the folder to mount, without links, and whether the user may write there.

    It is `remote`, else the session's project folder, else a namesake in the home. With `on_host`
    an absolute `remote` is a path of the host and not of the container. Raise `NotFound` if the
    folder is missing, or exists only in the container.
    """
    if remote is not None and (on_host or not remote.startswith("/")):
        return look(link, _below_home(remote))
    runtime, namesake = runtime_of(session), Path(local).name
    surveyed = survey(link, runtime, session.name)
    root = surveyed.server.root_directory if surveyed.server else ""
    if not runtime.has_containers:
        return look(link, remote or root or _below_home(namesake))
    container, mount = surveyed.container, f"jlr mount {shlex.quote(local)}"
    if container is None:
        what = f"the container `{session.name}` is gone"
        raise NotFound(what, hint=f"`{mount} {link.name}:DIR` mounts a folder of the host")
    for inside in (remote,) if remote else filter(None, (container.workdir, root)):
        if (outside := host_path(container, inside)) is not None:
            return look(link, outside, container)
    why = _no_volume(container, remote or container.workdir)
    if remote is None:
        with suppress(NotFound):
            return look(link, _below_home(namesake))
        why += f", and `{link.name}` has no `~/{namesake}`"
    hint = f"use `jlr cp`, or `{mount} {host_word(link.name)}:DIR` for a folder of the host"
    raise NotFound(why, hint=hint)


def host_path(container: Container, path: str) -> str | None:
    """Return the host's path of a container's `path`, `None` if it lies in no volume."""
    path = posixpath.normpath(path)
    covering = [v for v in container.volumes if _inside(path, posixpath.normpath(v.target))]
    if not covering:
        return None
    volume = max(covering, key=lambda volume: len(posixpath.normpath(volume.target)))
    rest = posixpath.relpath(path, volume.target)
    return posixpath.normpath(posixpath.join(volume.source, rest))


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _no_volume(container: Container, path: str) -> str:
    shown = [one_line(f"{v.target} (on the host {v.source})") for v in container.volumes]
    if not shown:
        return f"`{container.name}` has no volumes, and only volumes can be mounted"
    return f"`{one_line(path)}` of `{container.name}` is in none of its volumes: {', '.join(shown)}"


def _below_home(path: str) -> str:
    if path == "~" or path.startswith(("/", "~/")):
        return path
    return f"~/{path}"


def look(link: Link, path: str, container: Container | None = None) -> tuple[str, bool]:
    """Look at a folder of the host; `container` is one of which it is a volume."""
    quoted = f'"$HOME"/{shlex.quote(path[2:])}' if path[:1] == "~" else shlex.quote(path)
    done = run_script(link, f"folder={quoted}\n{_LOOK}")
    if done.status in (_MISSING, _CLOSED):
        why = "may not be read" if done.status == _CLOSED else "is missing or out of reach"
        what = f"the folder `{one_line(path)}` {why} on `{link.name}`"
        raise NotFound(what, hint=_advice(path, container))
    writable, _, physical = done.stdout.partition("\n")
    try:
        return absolute_path(physical.removesuffix("\n")), writable == "writable"
    except Refused as odd:
        raise Usage(f"cannot mount the folder: {odd}", hint="rename it on the host") from odd


def _advice(path: str, container: Container | None) -> str | None:
    for volume in container.volumes if container else ():
        if volume.name and _inside(path, volume.source):
            return (
                f"the engine keeps the volume `{volume.name}` where only root may look; "
                "give the container a folder of yours: `--volume ~/FOLDER:TARGET`"
            )
    return None


def _mount(
    program: str, record: MountRecord, link: Link, system: System, context: Context, undo: ExitStack
) -> None:
    _check_folder(record.local)
    folder = Path(record.local)
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    record = replace(record, made=len(missing) if folder.name else 0)
    MOUNTS.save(record)  # before sshfs runs, so that every mount of ours has a record
    undo.callback(known_mounts.take_away, record, context, force=True)
    _prepare(folder, system)
    link.mount(record.name, record.remote)
    complaint = sshfs.start(program, record, link.mount_socket, system.options)
    if complaint is not None or not _appears(record, system):
        raise _failed(record, link, complaint)


def _prepare(folder: Path, system: System) -> None:
    if not folder.name:  # a drive
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if system.winfsp:  # which makes it, and takes it away
            folder.rmdir()
    except OSError as error:
        raise JlrError(f"cannot create `{folder}`: {reason_of(error)}") from error


def _appears(record: MountRecord, system: System) -> bool:
    """Wait until it is mounted: WinFsp does it after sshfs has gone to the background."""
    limit = time.monotonic() + _APPEARS_SECONDS
    while not (mounted := record.local in system.mounted()):
        if not known_mounts.is_served(record) or time.monotonic() > limit:
            break
        time.sleep(0.05)
    return mounted


def _check_folder(local: str) -> None:
    folder = Path(local)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise Usage(f"`{local}` is a file", hint="choose a folder")
    with os.scandir(folder) as entries:
        if any(entries):
            what = f"`{local}` is not empty, and the mount would hide what is in it"
            raise Usage(what, hint="choose another folder")


def _failed(record: MountRecord, link: Link, complaint: str | None) -> JlrError:
    status = link.status().mount(record.name)
    reason = (status.failure if status else None) or complaint or "no reason given"
    hint = None
    if "fusermount" in reason and "not permitted" in reason:
        hint = "see `/etc/fuse.conf`: the administrator may have closed FUSE to users"
    failure = NotFound if "no such file" in reason.lower() else JlrError
    return failure(f"cannot mount `{record.host}:{record.remote}`: {reason}", hint=hint)
