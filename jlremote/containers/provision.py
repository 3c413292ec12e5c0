"""Provision of a session's container: reuse it, start it, or create it."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace

from jlremote.containers import image_definition, jupyter_launch, new_container
from jlremote.containers.host_folders import prepared, with_workspace
from jlremote.errors import JlrError, NotFound, Usage
from jlremote.gpus import allocation
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.hosts.requests import StartContext
from jlremote.images import image_names
from jlremote.images.image_commands import inspect_image_argv
from jlremote.jupyter import launch
from jlremote.jupyter.survey import Survey, survey
from jlremote.laptop import sessions
from jlremote.place.host.contract import run_script
from jlremote.place.host.shell_text import command_line, wait_while
from jlremote.place.runtimes.container_options import differences
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker import docker_errors, networks
from jlremote.place.runtimes.engine import engine_errors
from jlremote.place.runtimes.engine.engine_gpus import GPUS_LABEL
from jlremote.place.runtimes.runtime import START_LABEL, Container
from jlremote.place.runtimes.scripts import packages
from jlremote.selection import naming
from jlremote.text import printable

OTHER_START_SECONDS = 20


def ensure(start: StartContext, found: Survey) -> tuple[StartContext, Container, Survey]:
    """Return a running container, existing or new, with the start's context and the survey.

    The context has the engine that created it. The survey of a new container stays empty, unless
    its entrypoint runs a program of its own. Without container and image raise `NotFound`, and
    `JustCreated` if another start was faster.
    """
    container = found.container
    if not start.runtime.has_containers:
        return _without_container(start, found)
    if container is None:
        made, container, launches = _create(start)
        start = start.with_engine(made.engine)  # with the request as it was typed
        new_container.install(start, start.request.options.packages)
        if not launches:
            found = survey(start.host, start.runtime, start.name)
            if not found.server:
                runs = f"the program that the entrypoint of `{start.request.image}` runs"
                start.note(f"starting Jupyter beside {runs}")
        return start, container, found
    _explain_kept(start, container)
    if not container.running:
        container = _start(start, container)
    if not found.server and new_container.install_again(start, container):
        found = survey(start.host, start.runtime, start.name)
    return start, container, found


def await_start(start: StartContext) -> None:
    """Wait until another start has started the container that it created a moment ago."""
    running = command_line(docker.state_argv(start.engine, start.name, "Running"))
    with start.context.progress.step(f"Wait for another start of {start.name}"):
        run_script(start.host, wait_while(f'[ "$({running})" != true ]', OTHER_START_SECONDS))


def _without_container(
    start: StartContext, found: Survey
) -> tuple[StartContext, Container, Survey]:
    container = found.container
    if container is None:
        return image_definition.define(start)
    if start.runtime.has_images:
        _explain_kept(start, container)
        start = image_definition.with_its_gpus(start, container)
        if not found.server:
            image_definition.use_again(start, container)
    return start, container, found


def _explain_kept(start: StartContext, container: Container) -> None:
    request, typed = start.request, start.request.image
    if typed and container.image:
        by_engine = start.runtime.has_containers
        differ = image_names.surely_differ if by_engine else image_definition.differ
        if differ(typed, container.image):
            there = f"`{container.name}` already exists with the image {container.image}"
            start.note(f"{there}: `--image` applies to new containers only")
    uuids = container.labels.get(GPUS_LABEL)
    allocation.explain_unchanged(start, container.engine_gpus or container.gpus, uuids)
    with suppress(Usage):  # the current folder may not be a project folder
        options = with_workspace(request.options, request.workspace, request.host)
        if start.runtime.has_containers:
            items, has = request.options.environment, container.options.environment
            if lacking := [f"`{item.partition('=')[0]}`" for item in items if item not in has]:
                there = f"`{container.name}` already exists without {', '.join(lacking)}"
                start.note(f"{there}: `--env` applies to new containers only")
            options = replace(options, environment=())  # their values are not shown
        if others := differences(options, container.options):
            kept = (
                f"{one.option} is {f'`{printable(one.there)}`' if one.there else 'none'} "
                f"(you asked for `{one.asked}`)"
                for one in others
            )
            there = f"`{container.name}` already exists and keeps its settings: {'; '.join(kept)}"
            start.note(f"{there}{start.way_to_delete(container, 'for a new one')}")


def plan(start: StartContext, found: Survey, gpus: AllocatedGpus) -> list[str]:
    """Return the commands that `ensure` would run on the host; for `--dry-run`."""
    if found.container and found.container.running:
        return []
    if not start.runtime.has_containers:
        return image_definition.plan(start) if start.runtime.has_images else []
    host, name, image = start.host, start.name, start.request.image
    begin = [command_line(start.engine("start", start.container))]
    if found.container is not None:
        return begin
    if image is None:
        raise _nothing_to_create_from(start)
    start = prepared(start)
    engine, commands = start.engine, list[str]()
    inspected = run_script(host, command_line(inspect_image_argv(engine, image)))
    if docker_errors.NO_IMAGE.search(inspected.stderr):
        image_names.parse(image)
        commands.append(command_line(engine("pull", "--", image)))
    spec = new_container.spec_of(start, image, gpus, jupyter_launch.first_script(start))
    wanted = start.request.options.packages
    if networks.is_wanted(spec.options) and not networks.may_be_rootless(engine):
        own = networks.name_of(spec.name, start.mark)
        spec = replace(spec, options=replace(spec.options, network=own))
        commands.append(command_line(engine("network", "create", own)))
    labels = {**gpus.labels, **naming.label(start.request.container, name)}
    create = new_container.with_owner(docker.create_argv(engine, spec, labels))
    install = [start.runtime.inside(name, packages.install(wanted))] if wanted else []
    return [*commands, create, *begin, *install]


def _create(start: StartContext) -> tuple[StartContext, Container, bool]:
    if (image := start.request.image) is None:
        raise _nothing_to_create_from(start)
    start = prepared(start)
    with start.context.progress.step(f"Create {start.name} from {image}"):
        return new_container.with_image(start, image, lambda: _created(start, image))


def _created(start: StartContext, image: str) -> tuple[StartContext, Container, bool] | None:
    gpus = allocation.take(start)
    made = None
    try:
        spec = new_container.spec_of(start, image, gpus, jupyter_launch.first_script(start))
        made = new_container.create(start, spec, gpus)
    finally:
        if made is None:
            allocation.give_back(start, gpus)
    if made is not None:
        allocation.prove(made[0], gpus.engine, made[1].engine_gpus)
    return made


def _start(start: StartContext, container: Container) -> Container:
    name = start.name
    start.undo.callback(_stop_again, start, container)
    mark = container.labels.get(START_LABEL, "")
    begin = f"{command_line(start.engine('start', start.container))} >/dev/null"
    if container.is_session and container.options.network == networks.name_of(name, mark):
        begin = networks.started(start.engine, name, mark, start.container)
    inspect = networks.described(start.engine, start.container)
    with start.context.progress.step(f"Start {name}"):
        gpus = allocation.take_again(start, container)
        script = f"({begin}) || exit\n{inspect}"
        lease = gpus.keep_for(start.engine, start.container)
        done = start.host.run({"start": script} | lease)["start"]
    started = start.runtime.read(name, {"container": done}) if done.status == 0 else None
    if started is None or not started.running:
        why = engine_errors.reason(done) if done.status != 0 else started and started.halt
        raise docker_errors.start_error(start.engine, name, why or "it ends at once")
    allocation.prove(start, container.engine_gpus)
    return started


def _stop_again(start: StartContext, before: Container) -> None:
    shared = launch.is_shared(start.runtime, start.name, start.mark)
    inspect = command_line(docker.inspect_argv(start.engine, start.container))
    stop = command_line(start.engine("stop", start.container))
    with suppress(JlrError):
        now = start.runtime.read(start.name, start.host.run({"container": inspect}))
        if now is None or not now.running or now.started_at == before.started_at:
            return
        is_shared = run_script(start.host, start.runtime.inside(start.name, shared)).status == 0
        if not is_shared and run_script(start.host, stop).status == 0:
            return
    start.note(f"left running on `{start.request.host}`: the container `{start.name}`")


def _nothing_to_create_from(start: StartContext) -> NotFound:
    host, name = start.host.name, start.name
    typed, known = start.request.container or name, sessions.find(host, name)
    image = shlex.quote(known.image) if known and known.image else "IMAGE"
    hint = f"`jlr start {host} {typed} --image {image}` creates it; `jlr list {host} --all` and "
    hint += f"`jlr image list {host}` show what is there"
    what = f"there is no container `{name}` on `{host}`, and no image to create it from"
    return NotFound(what, hint=hint)
