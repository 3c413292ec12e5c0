"""Which engine is meant: the one that was named, the session's own, or the first that works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jlremote.errors import JlrError
from jlremote.host.contract import Host
from jlremote.host.shell_text import command_line
from jlremote.jupyter.locate import Survey, survey
from jlremote.link.client.link import Link
from jlremote.runtimes.containers import Containers
from jlremote.runtimes.contract import Runtime
from jlremote.runtimes.docker.docker_commands import usable_argv
from jlremote.runtimes.engine.engine import DOCKER, ENGINES, PODMAN, Engine
from jlremote.runtimes.engine.engine_errors import (
    EngineDisguised,
    EngineMissing,
    EngineUnusable,
    SudoPasswordNeeded,
    engine_error,
    tried,
)
from jlremote.runtimes.table import AUTO, runtime_named
from jlremote.storage import jobs, sessions
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.requests import EngineChoice, StartRequest

# Who is in none of these may still use `sudo`, by a rule of the host's own; but to try it would
# report everybody else to the administrator. They say `--sudo`.
_MAY_SUDO = "id -Gn 2>/dev/null | grep -qwE 'sudo|wheel|admin' && command -v sudo >/dev/null"
# What podman says of itself where it calls itself docker, unless it was silenced.
_UNMASK = (
    "case $({version} 2>/dev/null) in podman*) "
    "echo 'Emulate Docker CLI using podman' >&2; exit 1;; esac"
)


@dataclass(frozen=True)
class Search:
    """What came of looking for an engine.

    Attributes:
        found: the first that works, `None` for none.
        unusable: what keeps those before it from working, by their names.
    """

    found: Engine | None = None
    unusable: Mapping[str, EngineUnusable] = field(default_factory=dict)

    @property
    def likeliest(self) -> Engine:
        """The engine to speak of: the one that works, else the first that is there at all."""
        there = (ENGINES[name] for name, why in self.unusable.items() if _is_there(why))
        return self.found or next(there, DOCKER)


def surveyed(
    host: Host, runtime: Runtime, name: str, request: StartRequest, context: Context
) -> tuple[Runtime, Survey]:
    """Survey a session by the engine that is likely its own, or else by the first that works.

    Where the likely one can be used that is one round trip.

    Raises:
        EngineUnusable: none can be used, or not the one that was named.
    """
    typed = request.container
    try:
        return runtime, survey(host, runtime, name, typed=typed, check_gpus=True)
    except EngineUnusable as unusable:
        if request.runtime != AUTO:
            raise
        found = Containers(usable(host, sudo=request.sudo, reason=unusable))
        context.progress.note(f"{found.name} is used, as {unusable.message}")
    return found, survey(host, found, name, typed=typed, check_gpus=True)


def engine_on(host: Link, wanted: EngineChoice) -> Engine:
    """Return the engine whose images are meant on a host.

    Args:
        host: where.
        wanted: what was asked for; `auto` is the engine of the host's latest session, or of its
            latest job, or else the first that works.

    Raises:
        Usage: there is no such engine.
        EngineUnusable: none can be used.
    """
    sudo = wanted.sudo
    if wanted.runtime != AUTO:
        named = runtime_named(wanted.runtime, sudo=sudo).engine
        if named is not None:
            return named
    return _known(host, sudo=sudo) or usable(host, sudo=sudo)


def _known(host: Link, *, sudo: bool) -> Engine | None:
    """Return the engine of the host's latest session or job.

    By NVIDIA's old tool one container was made, and another may do without.
    """
    used = (engine.everyday for engine in used_on(host.name))
    return next((engine for engine in used if engine.behind_sudo or not sudo), None)


def used_on(host: str) -> Iterator[Engine]:
    """Give the engines of a host's sessions and then of its jobs, the latest first."""
    used = [(record.host, record.runtime) for record in sessions.load_all()]
    used += [(record.host, record.runtime) for record in jobs.load_all()]
    yield from (ENGINES[runtime] for where, runtime in used if where == host and runtime in ENGINES)


def engine_if_any(host: Link) -> Engine:
    """Return the engine of a host, or docker where none works, which can tell why.

    To look whether there is anything is no reason to ask for the password of `sudo`.
    """
    try:
        return _known(host, sudo=False) or usable(host, sudo=False, may_ask=False)
    except EngineUnusable:
        return DOCKER


def usable(
    host: Host, *, sudo: bool, reason: EngineUnusable | None = None, may_ask: bool = True
) -> Engine:
    """Return the first engine on the host that works, in one round trip.

    Args:
        host: where.
        sudo: whether it is to be one behind `sudo`.
        reason: why the likeliest one does not work, if that is known.
        may_ask: whether, where no other works, it may be one whose `sudo` wants a password.

    Raises:
        EngineUnusable: none does; tells what keeps the likeliest from it.
    """
    search = searched(host, sudo=sudo, may_ask=may_ask)
    if search.found is None:
        raise _likeliest([*((reason,) if reason else ()), *search.unusable.values()])
    return search.found


def searched(host: Host, *, sudo: bool, may_ask: bool = True) -> Search:
    """Look for the first engine that works, in one round trip.

    What needs no privileges comes first, and docker before podman: where both are, docker was
    installed on purpose.

    Args:
        host: where.
        sudo: whether it is to be one behind `sudo`; then what keeps those is told, too.
        may_ask: see `usable`.
    """
    candidates = [engine for engine in _candidates() if engine.behind_sudo or not sudo]
    done = host.run(
        {engine.name.replace(" ", "-"): _trial(engine, sudo=sudo) for engine in candidates}
    )
    unusable: dict[str, EngineUnusable] = {}
    locked = []
    for engine, trial in zip(candidates, done.values(), strict=True):
        if trial.status == 0:
            return Search(engine, unusable)
        failure = engine_error(engine, trial)
        if isinstance(failure, SudoPasswordNeeded):
            locked.append(engine)
        if isinstance(failure, EngineUnusable) and not (engine.behind_sudo and not sudo):
            unusable[engine.name] = failure
    last = locked[0] if locked and may_ask and not sudo else None
    return Search(last, unusable)


def _candidates() -> tuple[Engine, ...]:
    behind_sudo = (ENGINES[f"sudo {engine.name}"] for engine in (DOCKER, PODMAN))
    return DOCKER, PODMAN, *behind_sudo


def _trial(engine: Engine, *, sudo: bool) -> str:
    """Return the step that tries an engine, unless the one before it works."""
    steps = ['[ "$status" != 0 ] || exit 0']
    if engine.behind_sudo and not sudo:
        # Of a program that is not there, too, it would say that it wants a password.
        there = f"{_MAY_SUDO} && command -v {engine.kind.program} >/dev/null"
        # Whether it wants a password is read in its words.
        steps.append(f"{{ {there}; }} || exit 1; LC_ALL=C; export LC_ALL")
        engine = engine.unasked()
    if engine.kind is DOCKER.kind:
        steps.append(_UNMASK.format(version=command_line(engine("--version"))))
    return "\n".join((*steps, tried(usable_argv(engine))))


def _is_there(why: EngineUnusable) -> bool:
    return not isinstance(why, EngineMissing | EngineDisguised)


def _likeliest(failures: list[EngineUnusable]) -> JlrError:
    there = [failure for failure in failures if _is_there(failure)]
    if there or not failures:
        return there[0] if there else JlrError("no container engine can be used on the host")
    return EngineMissing(
        "neither docker nor podman is installed on the host",
        hint=f"install one there, `{DOCKER.kind.install}`, or start without containers: "
        "`--runtime none`",
    )
