"""The list of an engine's containers with their processes, in one round trip.

Nothing is run inside, as most of them may be other users'.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jlremote.place.host.answers import FIELD, PRINT_FIELD, PRINT_RECORD, RECORD, understood
from jlremote.place.host.contract import Completed
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.containers import read_container
from jlremote.place.runtimes.contract import Container
from jlremote.place.runtimes.docker.docker_commands import inspect_argv, list_ids_argv, top_argv
from jlremote.place.runtimes.engine.engine import Argv, Engine
from jlremote.place.runtimes.engine.engine_errors import engine_error
from jlremote.untrusted import document


@dataclass(frozen=True)
class ContainerProcess:
    """A process in a container."""

    user: str  # the host's name for it, or the number
    command: str  # its arguments, joined by spaces


@dataclass(frozen=True)
class ListedContainer:
    """A container as it is seen from outside."""

    container: Container  # as the engine describes it
    status: str  # the engine's word: `running`, `paused`, `exited`, `created`, …
    processes: tuple[ContainerProcess, ...] = ()


def script(engine: Engine) -> str:
    """Return the script that describes all containers and lists their processes."""
    every, running = (list_ids_argv(engine, every=every) for every in (True, False))
    described = _of("$ids", inspect_argv(engine, _WHICH))
    listed = _of('"$id"', top_argv(engine, _WHICH))
    return (
        f"ids=$({command_line(every)}) || exit\n"
        f'[ -z "$ids" ] || {described} 2>/dev/null\n'
        f"printf '{PRINT_RECORD}'\n"
        f"for id in $({command_line(running)}); do\n"
        f"  printf '%s{PRINT_FIELD}' \"$id\"; {listed} 2>/dev/null; printf '{PRINT_RECORD}'\n"
        "done\n"
    )


_WHICH = "WHICH"  # a placeholder for a shell variable


def _of(variable: str, argv: Argv) -> str:
    return command_line(argv).replace(_WHICH, variable)


@understood("the container engine")
def read(engine: Engine, done: Completed) -> tuple[ListedContainer, ...]:
    """Return the containers that the script listed, sorted by name.

    Raises:
        JlrError: the engine is missing, not permitted or not running.
    """
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
    """Give the processes of a table with the columns user, pid and arguments."""
    for line in lines:
        columns = line.split(None, 2)
        if len(columns) == 3:
            yield ContainerProcess(columns[0], columns[2])
