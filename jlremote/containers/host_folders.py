"""The host's folders that a new container sees, and the user that writes into them."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from jlremote.errors import NotFound, Usage
from jlremote.hosts.requests import StartContext
from jlremote.laptop.sessions import MOUNTS
from jlremote.place.host.contract import Completed, Host, understood
from jlremote.place.host.shell_text import command_line, typed_path
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.text import one_line
from jlremote.untrusted import Refused, count, document, whole_number

WORKSPACE = "/workspace"
_OWN_USERS = "--userns=host"
HERE = "."  # the value of a bare `--workspace`: the current folder's namesake

_WHO = "id -u; id -g; id -un; printf '%s\\n' \"$HOME\""


def prepared(start: StartContext) -> StartContext:
    """Resolve the folders of a start on the host before a long pull; raise as `on_host`."""
    request = start.request
    options = with_workspace(request.options, request.workspace, start.host.name)
    options = on_host(options, start.host, start.engine("info", "--format={{json .}}"))
    if options.user != request.options.user:
        why = "so that files in your folders stay yours; `--user root` is for images that need root"
        start.note(f"`{start.name}` runs as you ({options.user}), {why}")
    return replace(start, request=replace(request, options=options))


def with_workspace(options: ContainerOptions, workspace: str | None, host: str) -> ContainerOptions:
    """Return the options with the project folder mounted at `/workspace` as working folder.

    The workspace is relative to the home folder of the host; `.` is the folder mounted at the
    current local one (see `jlr mount`), else its namesake. If that is not a project folder, raise
    `Usage`.
    """
    if workspace is None:
        return options
    folder = _namesake(Path.cwd(), host) if workspace == HERE else workspace
    if not folder.startswith(("/", "~")):
        folder = f"~/{folder}"
    volumes = (*options.volumes, f"{folder}:{WORKSPACE}")
    return replace(options, volumes=volumes, workdir=options.workdir or WORKSPACE)


def _namesake(here: Path, host: str) -> str:
    for mount in MOUNTS.load_all():
        if mount.host == host and here.is_relative_to(mount.local):
            return str(PurePosixPath(mount.remote, here.relative_to(mount.local).as_posix()))
    if here == Path.home() or not here.name:
        hint = f"`--workspace=DIR` puts a folder of `{host}` at {WORKSPACE}"
        raise Usage(f"the current folder `{here}` is not a project folder", hint=hint)
    return f"~/{here.name}"


def on_host(options: ContainerOptions, host: Host, info: tuple[str, ...]) -> ContainerOptions:
    """Return the options with the host's home folder and user; asks the host only if needed.

    A container with folders of the host runs as the login user (see the room's decisions), but not
    if `--user` was given, or the engine itself maps root (rootless) or all users (`userns-remap`)
    to other users, by the JSON of its command `info`.

    Raise `Usage` if a volume's source is neither a folder of the host nor a volume's name, and
    `NotFound` if a folder is missing: the engine would make an empty one, owned by root.
    """
    sources = [source for source in map(_source, options.volumes) if source]
    if not sources:
        return options
    quoted = (shlex.quote(p) if p[0] == "/" else f'"$HOME"{shlex.quote(p[1:])}' for p in sources)
    tests = (f"[ -e {path} ] || echo {number}" for number, path in enumerate(quoted))
    steps = {"who": _WHO, "missing": "\n".join(tests)}
    if options.user is None:
        steps["info"] = command_line(info)
    answers = host.run(steps)
    uid, gid, name, home = _user(answers["who"])
    absent = {count(number) for number in answers["missing"].stdout.split()}
    if missing := [source for number, source in enumerate(sources) if number in absent]:
        raise _no_folder(missing, host.name)
    volumes = (home + v[1:] if v.startswith("~") else v for v in options.volumes)
    options = replace(options, volumes=tuple(volumes))
    if options.user is not None or uid == 0 or _maps_users(answers["info"], options):
        return options
    # The container's passwd file lacks the user, and many programs ask for its name.
    named = (f"USER={name}", f"LOGNAME={name}", *options.environment)
    return replace(options, user=f"{uid}:{gid}", environment=named)


def found_on_host(options: ContainerOptions, host: Host) -> ContainerOptions:
    """Do what `on_host` does for a runtime that maps no users; refuse a volume's name, too."""
    for volume in options.volumes:
        if _source(volume) is None:
            hint = "write `SOURCE:TARGET`; volumes that have names are docker's and podman's"
            raise Usage(f"`--volume {one_line(volume)}` names no folder of the host", hint=hint)
    user = options.user
    return replace(on_host(replace(options, user=user or ""), host, ()), user=user)


def _source(volume: str) -> str | None:
    source, colon, _ = volume.partition(":")
    if not colon or ("/" not in source and source != "~"):
        return None
    if source.startswith(("/", "~/")) or source == "~":
        return source
    hint = "write a path that begins with `/`, or with `~/` for your home folder on the host"
    what = f"`{one_line(source)}` in `--volume {one_line(volume)}` is not an absolute path"
    raise Usage(what, hint=hint)


@understood("the shell")
def _user(answer: Completed) -> tuple[int, int, str, str]:
    uid, gid, name, home = (answer.stdout.splitlines() + [""] * 4)[:4]
    return whole_number(uid), whole_number(gid), name or uid, home


@understood("the container engine")
def _maps_users(info: Completed, options: ContainerOptions) -> bool:
    try:
        facts: dict[str, Any] = document(info.stdout)
    except Refused:
        return False  # the engine does not work; creating the container will tell why
    docker = " ".join(facts.get("SecurityOptions") or ())
    podman: dict[str, Any] = (facts.get("host") or {}).get("security") or {}
    remaps = "name=userns" in docker and _OWN_USERS not in options.engine_arguments
    return bool(podman.get("rootless")) or "name=rootless" in docker or remaps


def _no_folder(missing: list[str], host: str) -> NotFound:
    shown = ", ".join(f"`{one_line(path)}`" for path in missing)
    made = " ".join(map(typed_path, missing))
    hint = f"`mkdir -p {one_line(made)}` on the host makes it; a volume has a name without `/`"
    if any(path.startswith(f"{Path.home()}/") for path in missing):
        hint = "write `'~/…'` in quotes: your shell has replaced `~` by your local home folder"
    return NotFound(f"missing or not accessible on `{host}`: {shown}", hint=hint)
