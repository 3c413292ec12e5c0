"""Creation of a container, without its entrypoint or by another engine if need be; packages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from jlremote.errors import JlrError, NotFound
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.hosts.context import Context
from jlremote.hosts.requests import StartContext, StartRequest
from jlremote.images import image_commands, pull
from jlremote.jupyter import launch, scripts
from jlremote.place.host.contract import USER_LABEL, Completed, run_script
from jlremote.place.host.shell_text import APART, command_line, stdin_of, wait_while
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker import docker_errors, networks
from jlremote.place.runtimes.engine.engine_errors import EngineUnusable, engine_error, reason
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.place.runtimes.runtime import START_LABEL, Container, ContainerSpec
from jlremote.place.runtimes.scripts import packages, variables, waiting
from jlremote.place.runtimes.table import AUTO
from jlremote.selection import naming
from jlremote.text import one_line, printable

Made = TypeVar("Made")
_TIMEOUT_SECONDS = 60.0 + waiting.ENTRYPOINT_SECONDS
_NOT_CREATED, _NOT_STARTED, _ENDED = 125, 126, 117
_LOST_SECONDS = 10.0  # of the wait for a creation whose script is lost, or was ended


def create(
    start: StartContext, spec: ContainerSpec, gpus: AllocatedGpus
) -> tuple[StartContext, Container, bool] | None:
    """Create and start a container in one round trip; return `None` if its image is missing.

    With the container come the context with the engine that created it, and whether it runs our
    command; else its entrypoint runs a program of its own. A container that cannot start (no such
    GPU, a port taken) is removed at once, and an entrypoint that ends it is left out. The lease on
    its GPUs is for the start at first, then for as long as it runs.
    """
    start.undo.callback(remove_marked, start)

    def attempt(engine: Engine, spec: ContainerSpec) -> Completed:
        return _attempt(start.with_engine(engine), spec, gpus)

    engine, spec, done = attempted(start.engine, spec, start.request, start.context, attempt)
    start = start.with_engine(engine)
    if spec.own_entrypoint and (why := _does_not_stay(done)) is not None:
        start.note(f"left out the entrypoint of `{spec.image}`: {why}")
        spec = replace(spec, own_entrypoint=False)
        done = _attempt(start, spec, gpus)
    if done.status == 0:
        return _read(start, spec, done)
    if docker_errors.NO_IMAGE.search(done.stderr):
        return None
    if done.status == _ENDED:
        raise docker_errors.ended_error(start.engine, spec.name, spec.image, done.stderr)
    raise docker_errors.creation_error(start.engine, spec, done, start.request.host)


def labels(start: StartContext, gpus: AllocatedGpus) -> dict[str, str]:
    """Return the labels of what this start creates."""
    typed = naming.label(start.request.container, start.name)
    return {**gpus.labels, **typed, START_LABEL: start.mark}


def spec_of(start: StartContext, image: str, gpus: AllocatedGpus, script: str) -> ContainerSpec:
    """Return the container that a start asks for; it runs `script` first."""
    options = start.request.options
    options = replace(options, environment=(*gpus.in_container, *options.environment))
    return ContainerSpec(start.name, image, options=options, gpus=gpus.engine, script=script)


def with_image(start: StartContext, image: str, make: Callable[[], Made | None]) -> Made:
    """Return what `make` makes of an image, which is pulled if it is missing, or `NotFound`."""
    if (made := make()) is not None:
        return made
    pull.transfer(start.host, start.engine, "pull", image, start.context)
    if (made := make()) is None:
        raise NotFound(f"the image `{image}` is missing although it was pulled")
    return made


def _attempt(start: StartContext, spec: ContainerSpec, gpus: AllocatedGpus) -> Completed:
    create = docker.create_argv(start.engine, spec, labels(start, gpus))
    script = _script(start, spec, with_owner(create, spec.options.environment, own_network=True))
    network = networks.creation(start.engine, spec.name, start.mark, spec.options)
    script = f"{unless_missing(start.engine, spec.image)}{network}{script}"
    steps = {"create": script} | gpus.keep_for(start.engine, spec.name)
    return start.host.run(steps, timeout=_TIMEOUT_SECONDS)["create"]


def _script(start: StartContext, spec: ContainerSpec, create: str) -> str:
    engine, name = start.engine, spec.name
    begin = command_line(engine("start", name))
    remove = command_line(docker.remove_argv(engine, name))
    inspect = networks.described(engine, name)
    running = command_line(docker.state_argv(engine, name, "Running"))
    last_line = command_line(docker.logs_argv(engine, name, 1, follow=False))
    ready = start.runtime.inside(name, waiting.until_ready(scripts.UNLESS_FOREIGN))
    # A killed `exec` (128 and the signal) ends a moment before the engine knows of the container's.
    until_known = wait_while(f'[ "$ready" -gt 128 ] && [ "$({running})" = true ]', 5)
    return f"""\
undo() {{ {remove} >/dev/null; forget; exit "$1"; }}
{create} >/dev/null || {{ forget; exit {_NOT_CREATED}; }}
{begin} >/dev/null || undo {_NOT_STARTED}
how=launches; facts=$({inspect}) || exit 1
case $facts in
*'"Entrypoint": null'*|*'"Entrypoint": ""'*) ;;
*)
  {ready} 2>/dev/null; ready=$?
  # Now the user for each later `exec` is known.
  [ "$ready" != {waiting.ANOTHER_USER} ] || {{ {ready} 2>/dev/null; ready=$?; }}
  [ "$ready" = 0 ] || how=else
  [ "$ready" != {waiting.ANOTHER_USER} ] || undo {waiting.ANOTHER_USER}
  {until_known}
  [ "$({running})" = true ] || {{ {last_line} >&2; undo {_ENDED}; }}
  facts=$({inspect}) || exit 1;;
esac
printf '%s\\n' "$how" "$(printf %s "$why" | tr '\\n' ' ')" "$facts"
"""


def unless_missing(engine: Engine, image: str) -> str:
    """Return the beginning of a script that ends if an image is missing.

    For engines that would pull it by themselves, as docker before 20.10 cannot be kept from; C
    locale, as errors are recognised by their words.
    """
    if engine.kind.pulls_never:
        return ""
    inspect = command_line(image_commands.inspect_image_argv(engine, image))
    return f"LC_ALL=C; export LC_ALL\n{inspect} >/dev/null || exit {_NOT_CREATED}\n"


def with_owner(create: Argv, environment: Iterable[str] = (), *, own_network: bool = False) -> str:
    """Return a command that creates a container, with a label of the user who runs it.

    The host's shell finds out that user, and the network where it has set one (`networks`).
    Variables may precede the engine's name. The values of `environment` are taken off its
    arguments, which all users of the host can read. Without its client docker would still create
    the container, but `remove_marked` would not wait for it.
    """
    words, own, lines = variables.off_arguments(create, environment)
    head = words.index("create") + 1
    label = f'"--label={USER_LABEL}=$(id -un || id -u)"'
    split = (item.partition("=") for item in own)
    assigned = (f"{name}={shlex.quote(value)} " for name, _, value in split)
    network = "${own:+--network=$own} " if own_network else ""
    command = f"{command_line(words[:head])} {label} {network}{command_line(words[head:])}"
    command = "".join((*assigned, APART, command))
    return f"{{ {command} {stdin_of(lines)}}}" if lines else command


def _does_not_stay(done: Completed) -> str | None:
    if done.status == waiting.ANOTHER_USER:
        return "it changes the user, and the image has no `setpriv` to follow; `--user` sets one"
    if done.status == _ENDED:
        last = one_line(done.stderr.strip())
        return "the container ends at once with it" + (f": {last}" if last else "")
    if done.status == _NOT_STARTED and docker_errors.program_refused(done):
        return reason(done)
    return None


def _read(
    start: StartContext, spec: ContainerSpec, done: Completed
) -> tuple[StartContext, Container, bool] | None:
    how, _, rest = done.stdout.partition("\n")
    why, _, facts = rest.partition("\n")
    if why:
        start.note(
            f"`{start.name}` uses the shared default network, and its data goes through "
            f"`{start.engine.shown('exec')}`: {reason(replace(done, stderr=why))}; "
            f"`jlr image prune {start.request.host}` removes unused networks"
        )
    container = start.runtime.read(spec.name, {"container": replace(done, stdout=facts)})
    return None if container is None else (start, container, how == "launches")


def remove_marked(start: StartContext) -> None:
    """Remove the container that this start created, found by its mark.

    Another command may have been faster to create one of the same name. It stays if another start
    has joined its server.
    """
    label = f"{START_LABEL}={start.mark}"
    find = start.engine("ps", "--all", "--quiet", f"--filter=label={label}")
    remove = docker.remove_argv(start.engine, "")[:-1]
    is_shared = launch.is_shared(start.runtime, start.name, start.mark)
    shared = start.runtime.inside(start.name, is_shared)
    # The creation goes on without its script; the brackets keep `grep` from finding itself.
    creating = f"grep -qs '[{label[0]}]{label[1:]}' /proc/[0-9]*/cmdline"
    script = (
        f"{wait_while(creating, _LOST_SECONDS, too_long='exit 1')}"
        f"ids=$({command_line(find)}) || exit 1\n"
        f'[ -z "$ids" ] || {{ ! {shared} >/dev/null 2>&1 && {command_line(remove)} $ids; }} ||\n'
        f"  exit 1\n"
        f"{networks.removal(start.engine, start.mark)}"
    )
    with suppress(JlrError):
        removed = run_script(start.host, script)
        if removed.status == 0:
            if removed.stdout.strip():
                start.note(f"removed the new container `{start.name}`")
            return
    start.note(f"left behind on `{start.request.host}`: the container `{start.name}`")


def attempted(
    engine: Engine,
    spec: ContainerSpec,
    request: StartRequest,
    context: Context,
    attempt: Callable[[Engine, ContainerSpec], Completed],
) -> tuple[Engine, ContainerSpec, Completed]:
    """Create a container by `attempt`; return the engine that did, of what, and the outcome."""
    done = attempt(engine, spec)
    other = docker_errors.old_tool(engine, done) if done.status != 0 else None
    if other is not None and request.runtime == AUTO:
        tool, why = other
        again = attempt(tool, spec)
        # Without such a tool, docker's own refusal is what matters.
        if again.status == 0 or not isinstance(engine_error(tool, again), EngineUnusable):
            context.progress.note(f"using {tool.name}, because {why}")
            engine, done = tool, again
    if docker_errors.init_missing(done):
        lacks = f"{engine.name} on `{request.host}` has no package `{engine.kind.init_package}`"
        context.progress.note(f"left out `--init`: {lacks}")
        spec = replace(spec, options=replace(spec.options, init=False))
        done = attempt(engine, spec)
    return engine, spec, done


def install(start: StartContext, wanted: tuple[str, ...]) -> None:
    """Install packages (in pip's notation), as a step that shows pip's last line."""
    if not wanted:
        return
    doing = start.runtime.in_image(start.name, packages.install(wanted))
    lines, begun = list[str](), ""
    with start.context.progress.step(one_line(f"Install {', '.join(wanted)}")):
        with start.host.stream(doing) as output:
            for text in output.text():
                *whole, begun = re.split(r"[\r\n]+", begun + text)
                lines += [line for line in whole if line.strip()]
                if lines:
                    start.context.progress.advance(one_line(lines[-1]))
        if output.status != 0:
            lines = [printable(line).rstrip() for line in (*lines, begun) if line.strip()]
            last = "\n".join(lines[-6:]) or "(no output)"
            hint = "check the names; `-e PIP_INDEX_URL=…` lets the container reach another index"
            if start.runtime.has_containers and "no space left" in last.lower():
                hint = docker_errors.space_hint(start.engine)
            what = f"cannot install the packages in `{start.name}`; pip's last lines:\n{last}"
            raise JlrError(what, hint=hint)


def install_again(start: StartContext, container: Container) -> bool:
    """Install a container's packages again if they are gone; return whether they were."""
    wanted = container.options.packages
    if not wanted:
        return False
    looked = run_script(start.host, start.runtime.in_image(start.name, packages.are_there(wanted)))
    if looked.status != packages.GONE:
        return False
    try:
        install(start, wanted)
    except JlrError as failure:
        start.note(f"the packages of `{start.name}` are gone: {failure.message}")
    return True
