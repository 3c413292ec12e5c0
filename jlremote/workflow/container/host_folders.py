"""The host's folders that a new container sees, and as whom it writes into them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from jlremote.errors import NotFound, Usage
from jlremote.host.contract import Completed, Host
from jlremote.host.shell_text import command_line, typed_path
from jlremote.runtimes.docker.docker_commands import info_argv
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.options.container_options import ContainerOptions
from jlremote.storage import mounts
from jlremote.text import one_line
from jlremote.workflow.host.requests import StartRequest

WORKSPACE = "/workspace"
HERE = "."  # as `--workspace` alone says: the current folder's namesake

_WHO = "id -u; id -g; id -un; printf '%s\\n' \"$HOME\""


@dataclass(frozen=True)
class HostUser:
    """Who one is on the host.

    Attributes:
        uid: user id.
        gid: group id.
        name: login name.
        home: absolute path of the home folder.
    """

    uid: int
    gid: int
    name: str
    home: str


def prepared(request: StartRequest, host: Host, engine: Engine) -> StartRequest:
    """Return the request with the options of its container as they are to be on the host.

    Raises:
        Usage: a folder of the host cannot be what was asked for.
        NotFound: it is missing.
    """
    options = with_workspace(request.options, request.workspace, host.name)
    return replace(request, options=on_host(options, host, info_argv(engine)))


def with_workspace(options: ContainerOptions, workspace: str | None, host: str) -> ContainerOptions:
    """Return the options with the project folder at `/workspace`, where work begins.

    Args:
        options: what was asked for besides.
        workspace: a folder of the host, one that is not absolute below the home; `.` is the one
            that the current folder here shows (see `jlr mount`), or else its namesake.
        host: what was typed after `ssh`.

    Raises:
        Usage: the current folder has no namesake.
    """
    if workspace is None:
        return options
    folder = _namesake(Path.cwd(), host) if workspace == HERE else workspace
    if not folder.startswith(("/", "~")):
        folder = f"~/{folder}"
    volumes = (*options.volumes, f"{folder}:{WORKSPACE}")
    return replace(options, volumes=volumes, workdir=options.workdir or WORKSPACE)


def _namesake(here: Path, host: str) -> str:
    for mount in mounts.load_all():
        if mount.host == host and here.is_relative_to(mount.local):
            return str(PurePosixPath(mount.remote, here.relative_to(mount.local).as_posix()))
    if here == Path.home() or not here.name:
        raise Usage(
            f"the current folder `{here}` is no project folder",
            hint=f"say which folder of `{host}` is to be at {WORKSPACE}: `--workspace=DIR`",
        )
    return f"~/{here.name}"


def on_host(options: ContainerOptions, host: Host, info: tuple[str, ...]) -> ContainerOptions:
    """Return the options as they are to be on this host; asks it if folders of it are named.

    A `~` becomes one's home there. Unless a user was asked for, a container that sees folders of
    the host runs as oneself, since what it wrote there would be root's otherwise. Where the engine
    itself maps the container's root to somebody else (rootless), nothing is to be done.

    Args:
        options: what was asked for.
        host: where.
        info: the engine's command that describes it as JSON.

    Raises:
        Usage: a volume's source is neither a folder of the host nor a volume's name.
        NotFound: such a folder is missing; the engine would make an empty one, owned by root.
    """
    sources = [source for source in map(_source, options.volumes) if source]
    if not sources:
        return options
    steps = {"who": _WHO, "missing": _missing(sources)}
    if options.user is None:
        steps["info"] = command_line(info)
    found = host.run(steps)
    user = _user(found["who"])
    if missing := [sources[int(number)] for number in found["missing"].stdout.split()]:
        raise _no_folder(missing, host.name)
    options = replace(options, volumes=tuple(_expanded(v, user) for v in options.volumes))
    if options.user is not None or user.uid == 0 or _maps_users(found["info"]):
        return options
    # Much asks for the name of a user who is in no passwd file there, and finds none.
    named = (f"USER={user.name}", f"LOGNAME={user.name}", *options.environment)
    return replace(options, user=f"{user.uid}:{user.gid}", environment=named)


def _source(volume: str) -> str | None:
    """Return the folder of the host that a volume shows, `None` for one that the engine keeps."""
    source, colon, _ = volume.partition(":")
    if not colon or ("/" not in source and source != "~"):
        return None
    if source.startswith(("/", "~/")) or source == "~":
        return source
    raise Usage(
        f"`{one_line(source)}` in `--volume {one_line(volume)}` is no absolute path",
        hint="write a path of the host from `/` on, or `~/…` for one below your home there",
    )


def _missing(sources: Iterable[str]) -> str:
    """Return the script that prints the numbers of the sources that are not there."""
    return "\n".join(
        f"[ -e {_quoted(source)} ] || echo {number}" for number, source in enumerate(sources)
    )


def _quoted(path: str) -> str:
    return f'"$HOME"{shlex.quote(path[1:])}' if path.startswith("~") else shlex.quote(path)


def _expanded(volume: str, user: HostUser) -> str:
    return user.home + volume[1:] if volume.startswith("~") else volume


def _user(answer: Completed) -> HostUser:
    uid, gid, name, home = (answer.stdout.splitlines() + [""] * 4)[:4]
    return HostUser(int(uid), int(gid), name or uid, home)


def _maps_users(info: Completed) -> bool:
    try:
        told: dict[str, Any] = json.loads(info.stdout)
    except ValueError:
        return False  # it does not work at all, and creating the container will tell why
    docker: list[str] = told.get("SecurityOptions") or []
    podman: dict[str, Any] = (told.get("host") or {}).get("security") or {}
    return any("rootless" in o or "userns" in o for o in docker) or bool(podman.get("rootless"))


def _no_folder(missing: list[str], host: str) -> NotFound:
    shown = ", ".join(f"`{one_line(path)}`" for path in missing)
    made = " ".join(map(typed_path, missing))
    hint = f"make it there: `mkdir -p {one_line(made)}`; a volume has a name without `/`"
    if any(path.startswith(f"{Path.home()}/") for path in missing):
        hint = "your shell has replaced `~` by your home here: write `'~/…'`, in quotes"
    return NotFound(f"missing on `{host}`, or out of your reach: {shown}", hint=hint)
