"""The choice of a container engine: named, the session's own, or the first that works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from jlremote.errors import JlrError, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.requests import EngineChoice, StartRequest
from jlremote.laptop import job_records, sessions
from jlremote.link.client.link import Link
from jlremote.link.wire.states import LoginShell
from jlremote.place.host.contract import Host, run_script
from jlremote.place.host.installation import commands
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.docker.docker_commands import usable_argv
from jlremote.place.runtimes.engine import engine_errors
from jlremote.place.runtimes.engine.engine_errors import EngineMissing, EngineSilent, EngineUnusable
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, PODMAN, Engine
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.table import AUTO, runtime_named

if TYPE_CHECKING:
    from jlremote.jupyter.survey import Survey

# A rule of the host may let other users use `sudo`, but trying would report all the others to the
# administrator. `--sudo` is for them.
_MAY_SUDO = "id -Gn 2>/dev/null | grep -qwE 'sudo|wheel|admin' && command -v sudo >/dev/null"
# podman prints this when it is called as docker, unless that is switched off.
_UNMASK = (
    "case $({version} 2>/dev/null) in podman*) "
    "echo 'Emulate Docker CLI using podman' >&2; exit 1;; esac"
)


class LoginHost(Host, Protocol):
    """A host that can also be asked by a login shell; see `Link.login_shell`."""

    def login_shell(self) -> tuple[LoginShell, bool]: ...


@dataclass(frozen=True)
class Search:
    """The result of a search for an engine."""

    engine: Engine | None = None  # the first engine that works, `None` for none
    # why the earlier ones do not work, by their names
    unusable: Mapping[str, EngineUnusable] = field(default_factory=dict)
    login: LoginShell | None = None  # the login shell's answer, if it was asked

    @property
    def likeliest(self) -> Engine:
        """The engine to name in messages: the one that works, else the first that is installed."""
        installed = (ENGINES[name] for name, why in self.unusable.items() if _is_installed(why))
        return self.engine or next(installed, DOCKER)


def surveyed(
    host: LoginHost, runtime: Runtime, name: str, request: StartRequest, context: Context
) -> tuple[Runtime, Survey]:
    """Survey a session with its likely engine, or else with the first that works.

    It takes one round trip if the likely one works. The engine in the session's record is not
    replaced: while its daemon is down, another engine would show no container of that name. It may
    be one that only a login shell finds, though (`EngineUnusable`: it does not work, or none does).
    """
    from jlremote.jupyter.survey import survey  # commands for images and jobs need none of it

    typed = request.container
    try:
        return runtime, survey(host, runtime, name, typed=typed, check_gpus=True)
    except EngineSilent:  # to try the others would take as long again
        raise
    except EngineUnusable as unusable:
        known = sessions.find(request.host, name)
        if request.runtime != AUTO or (known and known.runtime == runtime.name):
            look_further(host, runtime.program, unusable)
            return runtime, survey(host, runtime, name, typed=typed, check_gpus=True)
        other = Containers(usable(host, sudo=request.sudo, reason=unusable))
        if other.name != runtime.name:
            context.progress.note(f"using {other.name}, because {unusable.message}")
    return other, survey(host, other, name, typed=typed, check_gpus=True)


def look_further(host: LoginHost, program: str, unusable: EngineUnusable) -> None:
    """Look where a login shell looks for a program, and raise `unusable` if that finds no more."""
    login, finds_more = host.login_shell()
    if not finds_more:
        is_missing = isinstance(unusable, EngineMissing)
        raise _lacking(host, f"`{program}`", unusable, login) if is_missing else unusable


def _lacking(
    host: LoginHost, programs: str, missing: JlrError, login: LoginShell
) -> EngineUnusable:
    if login.trouble:
        why = f"cannot tell whether the host has {programs}: {login.looked()}"
        return EngineUnusable(why, hint=startup_files(host.name))
    return EngineMissing(f"{missing.message}: {login.looked()}", hint=missing.hint)


def startup_files(host: str) -> str:
    """Return the hint for a login shell that does not answer."""
    return (
        f"`ssh {host}` shows what its startup files wait for or say; after a change there "
        f"`jlr disconnect {host}` lets the next command ask again"
    )


def expect_answer(host: Host, script: str) -> None:
    """Check that the daemon answers on which a script may be waiting (`EngineSilent`)."""
    with_daemon = (ENGINES["sudo docker"], DOCKER)
    called = (engine for engine in with_daemon if f"{command_line(engine.command)} " in script)
    engine = next(called, None)
    if engine is None or engine_errors.is_tried(script):
        return
    try:
        trial = run_script(host, engine_errors.tried(usable_argv(engine)))
    except JlrError:  # the server has no session to spare for a second script, or is away
        return
    failure = engine_errors.engine_error(engine, trial)
    if isinstance(failure, EngineSilent):
        raise failure


def engine_on(host: Link, wanted: EngineChoice) -> Engine:
    """Return the engine that a command about images means.

    `auto` is that of the host's latest session, else of its latest job, else the first that works
    (`Usage`: there is no such engine; `EngineUnusable`: none works).
    """
    if wanted.runtime != AUTO:
        runtime = runtime_named(wanted.runtime, sudo=wanted.sudo)
        if (named := runtime.engine) is not None:
            if not named.behind_sudo and named not in used_on(host.name):  # it is used first
                trial = run_script(host, engine_errors.tried(usable_argv(named)))
                failure = engine_errors.engine_error(named, trial) if trial.status != 0 else None
                if isinstance(failure, EngineUnusable) and not isinstance(failure, EngineSilent):
                    look_further(host, named.kind.program, failure)
            return named
        if runtime.has_images:
            raise Usage(
                f"`--runtime {wanted.runtime}` cannot do that: its images are files",
                hint="`--runtime docker` or `--runtime podman` does it; an image that was pushed "
                "there is `docker://NAME` here",
            )
    return _known(host, sudo=wanted.sudo) or usable(host, sudo=wanted.sudo)


def _known(host: Link, *, sudo: bool) -> Engine | None:
    used = (engine.everyday for engine in used_on(host.name))
    return next((engine for engine in used if engine.behind_sudo or not sudo), None)


def used_on(host: str) -> Iterator[Engine]:
    """Yield the engines of a host's sessions, then of its jobs, the latest first."""
    used = [(record.host, record.runtime) for record in sessions.load_all()]
    used += [(record.host, record.runtime) for record in job_records.load_all()]
    yield from (ENGINES[runtime] for where, runtime in used if where == host and runtime in ENGINES)


def others(host: Link, engine: Engine) -> Iterator[Engine]:
    """Yield further engines that may have a container: those used there, or without privileges."""
    names = {engine.name}
    for other in (*used_on(host.name), DOCKER, PODMAN):
        if other.everyday.name not in names:
            names.add(other.everyday.name)
            yield other.everyday


def engine_if_any(host: Link) -> Engine:
    """Return the engine of a host; where none works, docker, whose error says why.

    `EngineSilent`: none works, and the likeliest does not answer, so it would hang the caller, too.
    """
    try:
        return _known(host, sudo=False) or usable(host, sudo=False, may_ask=False)
    except EngineSilent:
        raise
    except EngineUnusable:
        return DOCKER


def usable(
    host: LoginHost, *, sudo: bool, reason: EngineUnusable | None = None, may_ask: bool = True
) -> Engine:
    """Return the first engine on the host that works, in one round trip.

    With `sudo` only engines behind `sudo` count; with `may_ask` the last resort is one whose `sudo`
    wants a password. `reason` is why the likely one does not work, if that is known; if none does,
    the `EngineUnusable` says why the likeliest does not.
    """
    search = searched(host, sudo=sudo, may_ask=may_ask)
    if search.engine is not None:
        return search.engine
    failures = [*((reason,) if reason else ()), *search.unusable.values()]
    installed = [failure for failure in failures if _is_installed(failure)]
    if installed or not failures:
        raise installed[0] if installed else JlrError("no container engine works on the host")
    neither = EngineMissing(
        "neither docker nor podman was found on the host",
        hint=f"`{commands(DOCKER.kind.program)[0]}` there installs docker; `--runtime none` works "
        "without, and with `--slurm` a cluster's login node",
    )
    found = search.login
    raise neither if found is None else _lacking(host, "docker or podman", neither, found)


def searched(host: LoginHost, *, sudo: bool, may_ask: bool = True) -> Search:
    """Search for the first engine that works, in one round trip.

    Engines that need no privileges come first, and docker before podman: where both are, docker was
    installed on purpose. Where none works, they are tried with what only a login shell finds. For
    `sudo` and `may_ask` see `usable`.
    """
    search = _searched(host, sudo=sudo, may_ask=may_ask)
    silent = any(isinstance(why, EngineSilent) for why in search.unusable.values())
    if sudo or silent or search.engine is not None:  # `sudo` has a PATH of its own
        return search
    login, finds_more = host.login_shell()
    if finds_more:
        search = _searched(host, sudo=sudo, may_ask=may_ask)
    return replace(search, login=login)


def _searched(host: LoginHost, *, sudo: bool, may_ask: bool) -> Search:
    every = (DOCKER, PODMAN, ENGINES["sudo docker"], ENGINES["sudo podman"])
    candidates = [engine for engine in every if engine.behind_sudo or not sudo]
    done = host.run(
        {engine.name.replace(" ", "-"): _trial(engine, sudo=sudo) for engine in candidates}
    )
    unusable: dict[str, EngineUnusable] = {}
    locked = []
    for engine, trial in zip(candidates, done.values(), strict=True):
        if trial.status == 0:
            return Search(engine, unusable)
        failure = engine_errors.engine_error(engine, trial)
        if isinstance(failure, engine_errors.SudoPasswordNeeded):
            locked.append(engine)
        if isinstance(failure, EngineUnusable) and not (engine.behind_sudo and not sudo):
            unusable[engine.name] = failure
    last = locked[0] if locked and may_ask and not sudo else None
    return Search(last, unusable)


def _trial(engine: Engine, *, sudo: bool) -> str:
    steps = ['[ "$status" != 0 ] || exit 0']
    if engine.behind_sudo and not sudo:
        steps.append(engine_errors.unless_silent(engine.kind.program))
        # `sudo` asks for the password before it finds that a program is missing.
        there = f"{_MAY_SUDO} && command -v {engine.kind.program} >/dev/null"
        # Its own words, in English, say whether it wants a password.
        steps.append(f"{{ {there}; }} || exit 1; LC_ALL=C; export LC_ALL")
        engine = engine.unasked()
    if engine.kind is DOCKER.kind:
        steps.append(_UNMASK.format(version=command_line(engine("--version"))))
    return "\n".join((*steps, engine_errors.tried_next(usable_argv(engine))))


def _is_installed(why: EngineUnusable) -> bool:
    return not isinstance(why, EngineMissing | engine_errors.DockerIsPodman)
