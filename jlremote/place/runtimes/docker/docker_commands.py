"""The engines' command lines, as pure functions that `--verbose` and `--dry-run` show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from jlremote import __version__
from jlremote.laptop.settings.options import LOG_LIMIT, key
from jlremote.place.host.shell_text import IF_MISSING, command_line, wait_while
from jlremote.place.runtimes.container_options import (
    ARGUMENTS_LABEL,
    PACKAGES_LABEL,
    ContainerOptions,
)
from jlremote.place.runtimes.engine.engine_gpus import gpu_flags, with_gpus
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.place.runtimes.runtime import CREATOR_LABEL, SESSION_LABEL, ContainerSpec
from jlremote.place.runtimes.scripts import waiting

GONE_SECONDS = 30
# Every label of ours is set, also where it says nothing: else an image's own would count. The
# user's comes from the host's shell.
_LABELS = (
    *("created-by", "engine-arguments", "gpus", "job", "job-command", "job-gpus", "job-rm"),
    *("packages", "session", "start", "typed"),
)
UNUSED_LABELS: Mapping[str, str] = {f"org.jlremote.{word}": "" for word in _LABELS}
NO_LABELS: Mapping[str, str] = {}


def create_argv(engine: Engine, spec: ContainerSpec, labels: Mapping[str, str] = NO_LABELS) -> Argv:
    """Return the command that creates (and does not start) a container."""
    # It runs the script, then waits (see `waiting`); `--init` reaps orphans of later `exec`s.
    shell, *command = waiting.command(spec.script)
    told = {SESSION_LABEL: spec.name} | dict(labels)
    if words := spec.options.engine_arguments:
        told[ARGUMENTS_LABEL] = command_line(words)
    if spec.options.packages:
        told[PACKAGES_LABEL] = command_line(spec.options.packages)
    entrypoint = () if spec.own_entrypoint else (f"--entrypoint={shell}",)
    behind = (shell, *command) if spec.own_entrypoint else tuple(command)
    return _create(engine, spec, told, (*_log_flags(spec.options), *entrypoint), behind)


def job_argv(engine: Engine, spec: ContainerSpec, command: Argv, labels: Mapping[str, str]) -> Argv:
    """Return the command that creates a container for `command`, which may follow a script."""
    begin = ("-c", f'{spec.script}{IF_MISSING}exec "$@"', "sh") if spec.script else ()
    flags = (
        # A signal reaches all processes of the command, as Ctrl-C does at a terminal; a shell that
        # alone got it would wait for the others.
        "--env=TINI_KILL_PROCESS_GROUP=1",
        *(("--interactive",) if spec.interactive else ()),
        *(("--tty",) if spec.terminal else ()),
        *_job_log_flags(engine, spec.options),
        *(("--entrypoint=sh",) if spec.script else ()),
    )
    return _create(engine, spec, labels, flags, (*begin, *command))


def _create(
    engine: Engine, spec: ContainerSpec, labels: Mapping[str, str], flags: Argv, command: Argv
) -> Argv:
    # The person's own words come last: if one is no option, the container still has its name and
    # labels.
    never = ("--pull=never",) if engine.kind.pulls_never else ()
    told = {**UNUSED_LABELS, CREATOR_LABEL: f"jlr/{__version__}", **labels}
    given = (f"--label={name}={value}" for name, value in told.items())
    return (
        *with_gpus(engine, spec.gpus)("create", *never, f"--name={spec.name}", *given),
        *flags,
        *_flags(spec.options),
        *gpu_flags(engine, spec.gpus),
        *spec.options.engine_arguments,
        *(("--",) if engine.kind.ends_options else ()),
        spec.image,
        *command,
    )


def _job_log_flags(engine: Engine, options: ContainerOptions) -> Iterator[str]:
    if options.log_options not in ((), LOG_LIMIT):
        yield from _log_flags(options)
    elif not any(word.startswith("--log-driver") for word in options.engine_arguments):
        yield from (
            ("--log-driver=local", "--log-opt=max-size=10g", "--log-opt=max-file=2")
            if engine.kind.daemon == "docker"
            else ("--log-driver=json-file",)
        )


def _flags(options: ContainerOptions) -> Iterator[str]:
    if options.init is not False:
        yield "--init"
    if options.remove:
        yield "--rm"
    # Podman refuses to set the size of the host's own /dev/shm.
    shm_size = options.shm_size if options.ipc != "host" else None
    for option, values in (
        ("volume", options.volumes),
        ("env", options.environment),
        ("workdir", (options.workdir,)),
        ("user", (options.user,)),
        ("shm-size", (shm_size,)),
        ("ulimit", _valued("ulimit", options.ulimits)),
        ("ipc", (options.ipc,)),
        ("network", (options.network,)),
    ):
        yield from (f"--{option}={value}" for value in values if value)


def _log_flags(options: ContainerOptions) -> Iterator[str]:
    words = options.engine_arguments
    own = any(word.startswith("--log-driver") for word in words)
    given = (*LOG_LIMIT, *options.log_options)
    # A driver of the person's may take no such limit, as `none` does.
    limits = _valued("log-opt", (item for item in given if not (own and item in LOG_LIMIT)))
    if limits and not own:
        yield "--log-driver=json-file"
    for limit in limits:
        yield f"--log-opt={limit}"


def _valued(option: str, items: Iterable[str]) -> tuple[str, ...]:
    last = {key(option, item): item for item in items}
    return tuple(item for item in last.values() if not item.endswith("="))


def inspect_argv(engine: Engine, name: str) -> Argv:
    """Return the command that describes a container in full."""
    return engine("container", "inspect", name)


def state_argv(engine: Engine, name: str, field: Literal["Running", "Paused", "Pid"]) -> Argv:
    """Return the command that prints a field of a container's state; `Pid` is its main process."""
    return engine("container", "inspect", f"--format={{{{.State.{field}}}}}", name)


def attach_argv(
    engine: Engine, name: str, detach_keys: str | None = None, *, start: bool = False
) -> Argv:
    """Return the command that connects the caller's stdin and stdout to a container's command.

    With `start` that begins. The end of the terminal, a SIGHUP, must not reach what runs there.
    """
    begin = ("start", "--attach", "--interactive") if start else ("attach",)
    alone = ("--sig-proxy=false",) if not start or engine.kind.start_passes_signals else ()
    keys = () if detach_keys is None else (f"--detach-keys={detach_keys}",)
    return engine(*begin, *alone, *keys, name)


def remove_argv(engine: Engine, name: str) -> Argv:
    """Return the command that stops and removes a container and its unnamed volumes."""
    return engine("rm", "--force", "--volumes", name)


# The errors of a container that is being removed, by itself (`--rm`) or by another command.
_GOING = "*[Nn]'o such container'*|*'no container with name'*|*'already in progress'*"


def ended_script(engine: Engine, ending: Argv, name: str, *, goes: bool = False) -> str:
    """Return the script that stops or removes a container; one that is being removed counts.

    With `goes`, the engine removes the container when it has stopped, and the script waits for it.
    """
    there = f"{command_line(inspect_argv(engine, name))} >/dev/null 2>&1"
    stays = """{ printf '%s\\n' "$said" >&2; exit 1; }"""
    gone = wait_while(there, GONE_SECONDS, too_long=stays)
    return f"""\
said=$({command_line(ending)} 2>&1 >/dev/null)
case $?,$said in
0,*) {":" if goes else "exit"};;
{_GOING}) ;;
*) {stays};;
esac
{gone}"""


def usable_argv(engine: Engine) -> Argv:
    """Return a quick command that succeeds if the engine works."""
    return engine("ps", "--quiet", "--last=1")


def logs_argv(
    engine: Engine, name: str, tail: int | None, *, follow: bool, since: int | None = None
) -> Argv:
    """Return the command that prints the log of a container's main process."""
    flags = [f"--tail={'all' if tail is None else tail}"]
    if since is not None:
        flags.append(f"--since={since}" if since >= 0 else f"--since={-since}s")
    return engine("logs", *flags, *(("--follow",) if follow else ()), name)
