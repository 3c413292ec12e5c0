"""The container of a session: reuse it, start it, or create it."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import replace

from jlremote.errors import JlrError, NotFound
from jlremote.host.script import Completed, command_line
from jlremote.host.shell import run_script
from jlremote.jupyter.locate import Survey
from jlremote.runtimes import docker_commands as docker
from jlremote.runtimes import docker_errors, image_names
from jlremote.runtimes.container_options import FIELDS
from jlremote.runtimes.contract import START_LABEL, Container, ContainerSpec, Runtime
from jlremote.runtimes.engine import Engine
from jlremote.text import printable
from jlremote.workflow import gpu_taking, launching, registry
from jlremote.workflow.gpu_taking import Taken
from jlremote.workflow.requests import StartRequest
from jlremote.workflow.undertaking import Undertaking

LISTED = 8


def ensure(start: Undertaking, found: Survey) -> Container:
    """Return a container that runs: the one there is, or a new one.

    Raises:
        NotFound: there is no such container, and no image to create it from.
        JlrError: the engine refused.
    """
    container = found.container
    if container is None:
        return _create(start)
    _explain_kept(start, container)
    return container if container.running else _start(start, container)


def _explain_kept(start: Undertaking, container: Container) -> None:
    """Say what was asked for and holds for new containers only."""
    typed = start.request.image
    if typed and container.image and image_names.surely_differ(typed, container.image):
        start.context.progress.note(
            f"`{container.name}` exists already, of the image {container.image}: kept as it is"
        )
    if start.runtime.engine:
        gpu_taking.explain_unchanged(start, container.gpus)
    ignored = [
        f"--{name}" for name, field in FIELDS.items() if getattr(start.request.options, field)
    ]
    if ignored and start.runtime.engine:
        start.context.progress.note(
            f"`{container.name}` exists already: {', '.join(ignored)} would hold for a new one only"
        )


def plan(
    request: StartRequest, runtime: Runtime, name: str, found: Survey, gpus: Taken
) -> list[str]:
    """Return the commands that `ensure` would run on the host."""
    engine = runtime.engine
    if engine is None or (found.container is not None and found.container.running):
        return []
    begin = [command_line(docker.start_argv(engine, name))]
    if found.container is not None:
        return begin
    launch = launching.first_script(request, runtime, name, launching.BY_HAND)
    spec = _spec(request, name, request.image or "IMAGE", gpus, launch)
    return [command_line(docker.create_argv(engine, spec, gpus.labels)), *begin]


def _spec(request: StartRequest, name: str, image: str, gpus: Taken, launch: str) -> ContainerSpec:
    environment = (*gpus.in_container, *request.options.environment)
    return ContainerSpec(
        name=name,
        image=image,
        options=replace(request.options, environment=environment),
        gpus=gpus.engine,
        script=launch,
    )


def _create(start: Undertaking) -> Container:
    image, step = start.request.image, start.context.progress.step
    if image is None:
        raise _nothing_to_create_from(start)
    with step(f"Create {start.name} from {image}"):
        made = _created(start, image)
    if made is None:
        registry.fetch(start.host, start.engine, image, start.context)
        with step(f"Create {start.name}"):
            made = _created(start, image)
    if made is None:
        raise NotFound(f"the image `{image}` is not there, though it was pulled")
    return made


def _created(start: Undertaking, image: str) -> Container | None:
    """Create and start a container in one round trip; `None` if the image is not on the host.

    It launches JupyterLab by itself. What was created and cannot start (no such GPU, a port taken)
    is removed again at once. Its GPUs are leased, at first for the start and then for as long as it
    runs.
    """
    engine, gpus = start.engine, gpu_taking.take(start)
    launch = launching.first_script(start.request, start.runtime, start.name, start.launch_id)
    spec = _spec(start.request, start.name, image, gpus, launch)
    # Known before there is an answer: the person may press Ctrl-C in between.
    mark = secrets.token_hex(8)
    start.undo.callback(_remove, start, mark)
    create = docker.create_argv(engine, spec, {**gpus.labels, START_LABEL: mark})
    begin, remove = docker.start_argv(engine, spec.name), docker.remove_argv(engine, spec.name)
    script = (
        f"{command_line(create)} >/dev/null || exit 125\n"
        f"{command_line(begin)} >/dev/null || {{ {command_line(remove)} >/dev/null; exit 126; }}\n"
        f"{command_line(docker.inspect_argv(engine, spec.name))}"
    )
    done = start.host.run({"create": script} | gpus.keep_for(start.engine, start.name))["create"]
    if done.status == 0:
        return start.runtime.read(spec.name, {"container": done})
    if docker_errors.image_missing(done):
        return None
    raise docker_errors.creation_error(engine, spec, done)


def _start(start: Undertaking, container: Container) -> Container:
    name = start.name
    begin, inspect = (make(start.engine, name) for make in (docker.start_argv, docker.inspect_argv))
    with start.context.progress.step(f"Start {name}"):
        gpus = gpu_taking.take_again(start, container)
        script = f"{command_line(begin)} >/dev/null && {command_line(inspect)}"
        done = start.host.run({"start": script} | gpus.keep_for(start.engine, start.name))["start"]
    started = start.runtime.read(name, {"container": done}) if done.status == 0 else None
    if started is None or not started.running:
        raise _does_not_start(start.engine, name, done)
    start.undo.callback(_stop_again, start)
    return started


def _does_not_start(engine: Engine, name: str, done: Completed) -> JlrError:
    reason = docker_errors.reason(done) if done.status != 0 else "it ends at once"
    hint = f"`{engine.shown('logs', name)}` on the host may say why"
    if "paused" in reason:
        hint = f"let it go on: `{engine.shown('unpause', name)}` on the host"
    return JlrError(f"the container `{name}` does not start: {reason}", hint=hint)


def _remove(start: Undertaking, mark: str) -> None:
    """Remove the container that this call created, told by its mark and not by its name.

    The name may be somebody else's who was faster.
    """
    find = docker.find_argv(start.engine, START_LABEL, mark)
    remove = docker.remove_argv(start.engine, "")[:-1]
    script = f'ids=$({command_line(find)}) || exit 1; [ -z "$ids" ] || {command_line(remove)} $ids'
    with suppress(JlrError):
        if run_script(start.host, script).status == 0:
            return
    start.context.progress.note(
        f"left behind on `{start.request.host}`: the container `{start.name}`"
    )


def _stop_again(start: Undertaking) -> None:
    """Stop the container that this call started."""
    with suppress(JlrError):
        if (
            run_script(start.host, command_line(docker.stop_argv(start.engine, start.name))).status
            == 0
        ):
            return
    start.context.progress.note(
        f"left running on `{start.request.host}`: the container `{start.name}`"
    )


def _nothing_to_create_from(start: Undertaking) -> NotFound:
    """Return the error that names what the host has."""
    listing = start.host.run(
        {
            "containers": command_line(docker.list_containers_argv(start.engine)),
            "images": command_line(docker.list_images_argv(start.engine)),
        }
    )
    there = "; ".join(
        f"{kind} there: {_some(completed.stdout)}" for kind, completed in listing.items()
    )
    where = start.request.host
    return NotFound(
        f"there is no container `{start.name}` on `{where}`, and no image to create it from",
        hint=f"name an image: `--image IMAGE`; {there}",
    )


def _some(text: str) -> str:
    lines = [line for line in printable(text).split("\n") if line]
    more = f" and {len(lines) - LISTED} more" if len(lines) > LISTED else ""
    return (", ".join(lines[:LISTED]) or "none") + more
