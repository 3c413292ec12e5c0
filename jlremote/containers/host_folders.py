"""The host's folders that a new container sees, and the user that writes into them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from jlremote.errors import NotFound, Usage
from jlremote.hosts.requests import StartRequest
from jlremote.laptop import mounts
from jlremote.place.host.contract import Completed, Host, understood
from jlremote.place.host.shell_text import command_line, typed_path
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.text import one_line
from jlremote.untrusted import Refused, count, document, whole_number

WORKSPACE = "/workspace"
# Root is the login user; all users are none of the host's.
_ROOTLESS, _REMAPPED = "name=rootless", "name=userns"
_OWN_USERS = "--userns=host"
HERE = "."  # the value of a bare `--workspace`: the current folder's namesake

_WHO = "id -u; id -g; id -un; printf '%s\\n' \"$HOME\""


@dataclass(frozen=True)
class HostUser:
    """The login user on the host."""

    uid: int
    gid: int
    name: str
    home: str  # absolute path


def prepared(
    request: StartRequest, host: Host, engine: Engine, note: Callable[[str], None]
) -> StartRequest:
    """Return the request with its container's options resolved on the host; see `on_host`."""
    options = with_workspace(request.options, request.workspace, host.name)
    info = engine("info", "--format={{json .}}")
    return replace(request, options=on_host(options, host, info, note))


def with_workspace(options: ContainerOptions, workspace: str | None, host: str) -> ContainerOptions:
    """Return the options with the project folder mounted at `/workspace` as working folder.

    The workspace is relative to the home folder of the host; `.` is the folder mounted at the
    current local one (see `jlr mount`), else its namesake.

    Raises:
        Usage: the current folder is not a project folder.
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
            f"the current folder `{here}` is not a project folder",
            hint=f"`--workspace=DIR` puts a folder of `{host}` at {WORKSPACE}",
        )
    return f"~/{here.name}"


def on_host(
    options: ContainerOptions,
    host: Host,
    info: tuple[str, ...],
    note: Callable[[str], None] = lambda _: None,
) -> ContainerOptions:
    """Return the options with the host's home folder and user; asks the host only if needed.

    A container with folders of the host runs as the login user (see the room's decisions), but not
    if `--user` was given, or the engine itself maps root to another user (rootless) by the JSON of
    its command `info`. Where it maps all users to others (`userns-remap`), no user of a container
    is the login user, and a note says so.

    Raises:
        Usage: a volume's source is neither a folder of the host nor a volume's name.
        NotFound: a folder is missing; the engine would make an empty one, owned by root.
    """
    sources = [source for source in map(_source, options.volumes) if source]
    if not sources:
        return options
    steps = {"who": _WHO, "missing": _missing(sources)}
    if options.user is None:
        steps["info"] = command_line(info)
    found = host.run(steps)
    user = _user(found["who"])
    absent = {count(word) for word in found["missing"].stdout.split()}
    if missing := [source for number, source in enumerate(sources) if number in absent]:
        raise _no_folder(missing, host.name)
    volumes = (user.home + v[1:] if v.startswith("~") else v for v in options.volumes)
    options = replace(options, volumes=tuple(volumes))
    if options.user is not None or user.uid == 0:
        return options
    if (mapped := _mapping(found["info"])) == _REMAPPED and _OWN_USERS in options.engine_arguments:
        mapped = None
    if mapped == _REMAPPED:
        note(
            f"docker on `{host.name}` maps all users of a container to others (`userns-remap`), "
            f"who may neither read nor write your folders: `-- {_OWN_USERS}` maps none"
        )
    if mapped is not None:
        return options
    # The container's passwd file lacks the user, and many programs ask for its name.
    named = (f"USER={user.name}", f"LOGNAME={user.name}", *options.environment)
    return replace(options, user=f"{user.uid}:{user.gid}", environment=named)


def found_on_host(options: ContainerOptions, host: Host) -> ContainerOptions:
    """Return the options with the host's home folder, for a runtime that maps no users.

    Raises:
        Usage: a volume's source is no folder of the host.
        NotFound: a folder is missing.
    """
    for volume in options.volumes:
        if _source(volume) is None:
            raise Usage(
                f"`--volume {one_line(volume)}` names no folder of the host",
                hint="write `SOURCE:TARGET`; volumes that have names are docker's and podman's",
            )
    user = options.user
    return replace(on_host(replace(options, user=user or ""), host, ()), user=user)


def _source(volume: str) -> str | None:
    """Return a volume's folder on the host, `None` for one that the engine keeps."""
    source, colon, _ = volume.partition(":")
    if not colon or ("/" not in source and source != "~"):
        return None
    if source.startswith(("/", "~/")) or source == "~":
        return source
    raise Usage(
        f"`{one_line(source)}` in `--volume {one_line(volume)}` is not an absolute path",
        hint="write a path that begins with `/`, or with `~/` for your home folder on the host",
    )


def _missing(sources: Iterable[str]) -> str:
    """Return the script that prints the numbers of the sources that are not there."""
    return "\n".join(
        f"[ -e {_quoted(source)} ] || echo {number}" for number, source in enumerate(sources)
    )


def _quoted(path: str) -> str:
    return f'"$HOME"{shlex.quote(path[1:])}' if path.startswith("~") else shlex.quote(path)


@understood("the shell")
def _user(answer: Completed) -> HostUser:
    uid, gid, name, home = (answer.stdout.splitlines() + [""] * 4)[:4]
    return HostUser(whole_number(uid), whole_number(gid), name or uid, home)


@understood("the container engine")
def _mapping(info: Completed) -> str | None:
    """Return how the engine maps the users of containers, `None` for not at all."""
    try:
        told: dict[str, Any] = document(info.stdout)
    except Refused:
        return None  # the engine does not work; creating the container will tell why
    docker: list[str] = told.get("SecurityOptions") or []
    podman: dict[str, Any] = (told.get("host") or {}).get("security") or {}
    if podman.get("rootless") or any(option.startswith(_ROOTLESS) for option in docker):
        return _ROOTLESS
    return _REMAPPED if any(option.startswith(_REMAPPED) for option in docker) else None


def _no_folder(missing: list[str], host: str) -> NotFound:
    shown = ", ".join(f"`{one_line(path)}`" for path in missing)
    made = " ".join(map(typed_path, missing))
    hint = f"`mkdir -p {one_line(made)}` on the host makes it; a volume has a name without `/`"
    if any(path.startswith(f"{Path.home()}/") for path in missing):
        hint = "write `'~/…'` in quotes: your shell has replaced `~` by your local home folder"
    return NotFound(f"missing or not accessible on `{host}`: {shown}", hint=hint)
