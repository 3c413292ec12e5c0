"""The folder of the host that a mount shows: the session's project folder, or a named one."""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import NotFound, Usage
from jlremote.jupyter.survey import survey
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.typed_place import host_word
from jlremote.link.client.link import Link
from jlremote.place.host.contract import run_script
from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.table import runtime_of
from jlremote.text import one_line
from jlremote.untrusted import Refused, absolute_path

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
class Folder:
    """A folder on the host: its path without symbolic links, and whether the user may write."""

    path: str
    writable: bool


def find(
    link: Link, session: SessionRecord, remote: str | None, local: str, *, on_host: bool
) -> Folder:
    """Return the folder to mount: `remote`, else the session's project folder, else a namesake.

    With `on_host` an absolute `remote` is a path of the host and not of the container.

    Raises:
        NotFound: the folder is missing, or exists only in the container.
    """
    if remote is not None and (on_host or not remote.startswith("/")):
        return _look(link, _below_home(remote))
    runtime = runtime_of(session)
    surveyed = survey(link, runtime, session.name)
    roots = [surveyed.server.root_directory] if surveyed.server else []
    if not runtime.has_containers:
        path = remote or next(iter(roots), None) or _namesake(local)
        return _look(link, path)
    if surveyed.container is None:
        raise NotFound(
            f"the container `{session.name}` is gone",
            hint=f"`jlr mount {shlex.quote(local)} {link.name}:DIR` mounts a folder of the host",
        )
    if remote is not None:
        outside = host_path(surveyed.container, remote)
        if outside is None:
            raise NotFound(_no_volume(surveyed.container, remote), hint=_other_ways(link, local))
        return _look(link, outside, surveyed.container)
    return _project(link, surveyed.container, [surveyed.container.workdir, *roots], local)


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


def _project(link: Link, container: Container, candidates: list[str], local: str) -> Folder:
    for candidate in candidates:
        path = host_path(container, candidate)
        if path is not None:
            return _look(link, path, container)
    try:
        return _look(link, _namesake(local))
    except NotFound as missing:
        raise NotFound(
            f"{_no_volume(container, container.workdir)}, and `{link.name}` has no "
            f"`~/{Path(local).name}`",
            hint=_other_ways(link, local),
        ) from missing


def _no_volume(container: Container, path: str) -> str:
    shown = [one_line(f"{v.target} (on the host {v.source})") for v in container.volumes]
    if not shown:
        return f"`{container.name}` has no volumes, and only volumes can be mounted"
    return f"`{one_line(path)}` of `{container.name}` is in none of its volumes: {', '.join(shown)}"


def _other_ways(link: Link, local: str) -> str:
    mount = f"`jlr mount {shlex.quote(local)} {host_word(link.name)}:DIR`"
    return f"use `jlr cp`, or {mount} for a folder of the host"


def _namesake(local: str) -> str:
    return _below_home(Path(local).name)


def _below_home(path: str) -> str:
    if path == "~" or path.startswith(("/", "~/")):
        return path
    return f"~/{path}"


def _look(link: Link, path: str, container: Container | None = None) -> Folder:
    quoted = f'"$HOME"/{shlex.quote(path[2:])}' if path[:1] == "~" else shlex.quote(path)
    done = run_script(link, f"folder={quoted}\n{_LOOK}")
    if done.status in (_MISSING, _CLOSED):
        why = "may not be read" if done.status == _CLOSED else "is missing or out of reach"
        raise NotFound(
            f"the folder `{one_line(path)}` {why} on `{link.name}`", hint=_advice(path, container)
        )
    writable, _, physical = done.stdout.partition("\n")
    try:
        return Folder(absolute_path(physical.removesuffix("\n")), writable == "writable")
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
