"""The list of an engine's containers with their processes; nothing is run in any of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jlremote.place.host.contract import (
    FIELD,
    PRINT_FIELD,
    PRINT_RECORD,
    RECORD,
    Completed,
    understood,
)
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.docker.docker_commands import inspect_argv
from jlremote.place.runtimes.engine.engine_errors import engine_error
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.place.runtimes.engine_containers import read_container
from jlremote.place.runtimes.runtime import Container
from jlremote.text import listed, one_line
from jlremote.untrusted import document


@dataclass(frozen=True)
class ContainerProcess:
    """A process in a container."""

    user: str  # the host's name for it, or the number
    command: str  # its arguments, joined by spaces


@dataclass(frozen=True)
class ListedContainer:
    """A container with its state and processes."""

    container: Container  # as the engine describes it
    status: str  # the engine's word: `running`, `paused`, `exited`, `created`, …
    processes: tuple[ContainerProcess, ...] = ()


def script(engine: Engine) -> str:
    """Return the script that describes all containers and lists their processes."""
    ids = engine("ps", "--quiet", "--no-trunc")
    described = _of("$ids", inspect_argv(engine, _WHICH))
    podman = engine.kind.program == "podman"
    columns = ("huser", "hpid", "args") if podman else ("-eo", "user:32,pid,args")
    listed = _of('"$id"', engine("top", _WHICH, *columns))
    return (
        f"ids=$({command_line(ids)} --all) || exit\n"
        f'[ -z "$ids" ] || {described} 2>/dev/null\n'
        f"printf '{PRINT_RECORD}'\n"
        f"for id in $({command_line(ids)}); do\n"
        f"  printf '%s{PRINT_FIELD}' \"$id\"; {listed} 2>/dev/null; printf '{PRINT_RECORD}'\n"
        "done\n"
    )


_WHICH = "WHICH"  # a placeholder for a shell variable


def _of(variable: str, argv: Argv) -> str:
    return command_line(argv).replace(_WHICH, variable)


@understood("the container engine")
def read(engine: Engine, done: Completed) -> tuple[ListedContainer, ...]:
    """Return the containers that the script listed, sorted by name (`JlrError`: no answer)."""
    described, *listed = done.stdout.split(RECORD)
    if not listed:
        raise engine_error(engine, done)
    # The table of a container that has gone meanwhile is empty. `strip()` alone would strip the
    # separators, too.
    parted = (text.strip("\n").partition(FIELD) for text in listed)
    tables = {identity: table for identity, _, table in parted}
    found = document(described) if described.strip() else []
    glimpses = (
        ListedContainer(
            read_container(inspected),
            str(inspected["State"].get("Status", "")),
            tuple(_processes(tables.get(inspected["Id"], "").splitlines()[1:])),
        )
        for inspected in found
    )
    return tuple(sorted(glimpses, key=lambda glimpse: glimpse.container.name))


def _processes(lines: Iterable[str]) -> Iterable[ContainerProcess]:
    for line in lines:
        columns = line.split(None, 2)
        if len(columns) == 3:
            yield ContainerProcess(columns[0], columns[2])


_PACKAGE = re.compile(r"-packages/([^/]+?)-[^/-]+\.dist-info$")
# What programs write without being asked, and what jlr has there.
_NOISE = re.compile(
    r"^/(run|proc|sys|dev|opt/jlr)(/|$)|/\.?jlr-[^/]*(/|$)|/\.(cache|ipython|jupyter|npm|bash_history)"
    r"|/\.local/share/jupyter|/__pycache__|\.pyc$|-packages/|^(/usr)?/sbin/docker-init$"
)
# Each virtual environment of jlr begins with them.
_OF_ENVIRONMENT = re.compile(r"(/\.packages|^/opt/jlr)/.*-packages/(pip|setuptools)-")
_SHOWN = 5


def changes_in_words(printed: str, volumes: Sequence[str]) -> tuple[str, ...]:
    """Return in words what would be deleted with a container.

    `printed` has the lines of `docker diff`; `volumes` are the folders that stay.
    """
    paths = sorted(line[2:] for line in printed.splitlines() if line[:2] in ("A ", "C "))
    kept = tuple(f"{volume.rstrip('/')}/" for volume in volumes)
    outside = [path for path in paths if not f"{path}/".startswith(kept)] if kept else paths
    installed = (path for path in outside if not _OF_ENVIRONMENT.search(path))
    packages = {found[1] for path in installed if (found := _PACKAGE.search(path))}
    parents = {path.rpartition("/")[0] for path in paths}
    files = [path for path in outside if path not in parents and not _NOISE.search(path)]
    words = []
    if packages:
        words.append(f"packages that were installed in it: {listed(sorted(packages), _SHOWN)}")
    if files:
        words.append(f"among its files: {listed(files, _SHOWN)}")
    return tuple(map(one_line, words))
