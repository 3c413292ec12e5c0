"""Provision of a session's container: reuse it, start it, or create it."""

from __future__ import annotations

import secrets
import shlex
from contextlib import suppress
from dataclasses import replace

from jlremote.containers import creation, image_definition, jupyter_launch, package_install
from jlremote.containers.host_folders import prepared, with_workspace
from jlremote.errors import JlrError, NotFound, Usage
from jlremote.gpus import allocation
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.hosts.start_context import StartContext
from jlremote.images import commands, image_names
from jlremote.images.stories import registry
from jlremote.jupyter import scripts
from jlremote.jupyter.survey import Survey, survey
from jlremote.laptop import sessions
from jlremote.place.host.contract import Host, run_script
from jlremote.place.host.shell_text import command_line, wait_while
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker import docker_errors, networks
from jlremote.place.runtimes.engine import engine_errors
from jlremote.place.runtimes.engine.engine_gpus import GPUS_LABEL
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.existing_options import Difference, differences
from jlremote.place.runtimes.runtime import START_LABEL, Container, ContainerSpec
from jlremote.place.runtimes.scripts import packages
from jlremote.selection import naming
from jlremote.text import closest, is_name, listed, printable

LISTED = 8
OTHER_START_SECONDS = 20


def ensure(start: StartContext, found: Survey) -> tuple[StartContext, Container, Survey]:
    """Return a running container, existing or new, with the start's context and the survey.

    The context has the engine that created it. The survey of a new container stays empty, unless
    its entrypoint runs a program of its own.

    Raises:
        NotFound: there is no such container, and no image to create it from.
        JustCreated: another start was faster to create it.
        JlrError: the engine refused.
    """
    container = found.container
    if not start.runtime.has_containers:
        return _without_container(start, found)
    if container is None:
        made, container, launches = _create(start)
        start = start.with_engine(made.engine)  # with the request as it was typed
        package_install.install(start, start.request.options.packages, packages.install)
        return start, container, found if launches else _own_program(start)
    _explain_kept(start, container)
    if container.running:
        allocation.explain_others(start, container)
    else:
        container = _start(start, container)
    if not found.server and package_install.restore(start, container):
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
    """Return the host itself, or the session's definition, existing or new."""
    container = found.container
    if container is None:
        return image_definition.define(start)
    if start.runtime.has_images:
        _explain_kept(start, container)
        start = image_definition.with_its_gpus(start, container)
        if not found.server:
            use_again(start, container)
    return start, container, found


def use_again(start: StartContext, container: Container) -> None:
    """Try the image of a defined session whose server does not run, and complete its packages."""
    image_definition.again(start, container)
    package_install.restore(start, container)


def _own_program(start: StartContext) -> Survey:
    """Survey a new container whose entrypoint runs a program of its own, maybe Jupyter."""
    found = survey(start.host, start.runtime, start.name)
    if not found.server:
        start.note(
            f"starting Jupyter beside the program that the entrypoint of `{start.request.image}` "
            "runs"
        )
    return found


def _explain_kept(start: StartContext, container: Container) -> None:
    typed = start.request.image
    if typed and container.image and _differ(start, typed, container):
        start.note(
            f"`{container.name}` already exists with the image {container.image}: `--image` "
            "applies to new containers only"
        )
    uuids = container.labels.get(GPUS_LABEL)
    allocation.explain_unchanged(start, container.engine_gpus or container.gpus, uuids)
    _explain_other_settings(start, container)


def _differ(start: StartContext, typed: str, container: Container) -> bool:
    if start.runtime.has_containers:
        return image_names.surely_differ(typed, str(container.image))
    return not image_definition.keeps_image(typed, container)


def _explain_other_settings(start: StartContext, container: Container) -> None:
    request = start.request
    with suppress(Usage):  # the current folder may not be a project folder
        options = with_workspace(request.options, request.workspace, request.host)
        if start.runtime.has_containers:  # its next server gets them
            options = replace(options, environment=())
        if others := differences(options, container.options):
            told = "; ".join(map(_in_words, others))
            start.note(
                f"`{container.name}` already exists and keeps its settings: {told}"
                f"{start.way_to_delete(container, 'for a new one')}"
            )


def _in_words(found: Difference) -> str:
    has = "none" if found.there is None else f"`{printable(found.there)}`"
    return f"{found.option} is {has} (you asked for `{found.asked}`)"


def plan(start: StartContext, found: Survey, gpus: AllocatedGpus) -> list[str]:
    """Return the commands that `ensure` would run on the host; for `--dry-run`."""
    if found.container and found.container.running:
        return []
    if not start.runtime.has_containers:
        return image_definition.plan(start) if start.runtime.has_images else []
    name, image = start.name, start.request.image
    begin = [command_line(docker.start_argv(start.engine, start.container))]
    if found.container is not None:
        return begin
    if image is None:
        raise _nothing_to_create_from(start, name)
    start = start.with_engine(creation.foreseen_engine(start))
    start = replace(start, request=prepared(start.request, start.host, start.engine, start.note))
    spec, wanted = _spec(start, image, gpus), start.request.options.packages
    install = [start.runtime.inside(name, packages.install(wanted))] if wanted else []
    labels = {**gpus.labels, **naming.label(start.request.container, name)}
    network, spec = _planned_network(start.engine, spec)
    create = creation.with_owner(docker.create_argv(start.engine, spec, labels))
    return [*_bring(start.host, start.engine, image), *network, create, *begin, *install]


def _planned_network(engine: Engine, spec: ContainerSpec) -> tuple[list[str], ContainerSpec]:
    if not networks.is_wanted(spec.options) or networks.may_be_rootless(engine):
        return [], spec
    own = networks.name_of(spec.name, secrets.token_hex(8))
    there = replace(spec, options=replace(spec.options, network=own))
    return [command_line(engine("network", "create", own))], there


def _bring(host: Host, engine: Engine, image: str) -> list[str]:
    """Return the command that pulls an image, unless the host has it."""
    there = run_script(host, command_line(commands.inspect_image_argv(engine, image)))
    if not docker_errors.image_missing(there):
        return []
    image_names.parse(image)
    return [command_line(engine("pull", "--", image))]


def _spec(start: StartContext, image: str, gpus: AllocatedGpus) -> ContainerSpec:
    options = start.request.options
    return ContainerSpec(
        name=start.name,
        image=image,
        options=replace(options, environment=(*gpus.in_container, *options.environment)),
        gpus=gpus.engine,
        script=jupyter_launch.first_script(start),
    )


def _create(start: StartContext) -> tuple[StartContext, Container, bool]:
    image, step = start.request.image, start.context.progress.step
    if image is None:
        raise _nothing_to_create_from(start, start.name)
    start = creation.prepare(start)
    with step(f"Create {start.name} from {image}"):
        made = _created(start, image)
        if made is None:
            registry.fetch(start.host, start.engine, image, start.context)
            made = _created(start, image)
    if made is None:
        raise NotFound(f"the image `{image}` is missing although it was pulled")
    return made


def _created(start: StartContext, image: str) -> tuple[StartContext, Container, bool] | None:
    gpus = allocation.take(start)
    made = None
    try:
        made = creation.create(start, _spec(start, image, gpus), gpus)
    finally:
        if made is None:
            allocation.give_back(start, gpus)
    if made is not None:
        allocation.prove(made[0], gpus.engine, made[1].engine_gpus)
    return made


def _start(start: StartContext, container: Container) -> Container:
    name = start.name
    start.undo.callback(_stop_again, start, container)
    begin = _begin(start, container)
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


def _begin(start: StartContext, container: Container) -> str:
    mark = container.labels.get(START_LABEL, "")
    if container.is_session and container.options.network == networks.name_of(start.name, mark):
        return networks.started(start.engine, start.name, mark, start.container)
    return f"{command_line(docker.start_argv(start.engine, start.container))} >/dev/null"


def _stop_again(start: StartContext, before: Container) -> None:
    """Stop the container if this start has started it, and no other start shares its server.

    A paused one stays paused.
    """
    shared = scripts.is_shared(start.runtime, start.name, start.launch_id)
    inspect, stop = (
        command_line(make(start.engine, start.container))
        for make in (docker.inspect_argv, docker.stop_argv)
    )
    with suppress(JlrError):
        now = start.runtime.read(start.name, start.host.run({"container": inspect}))
        if now is None or not now.running or now.started_at == before.started_at:
            return
        is_shared = run_script(start.host, start.runtime.inside(start.name, shared)).status == 0
        if not is_shared and run_script(start.host, stop).status == 0:
            return
    start.note(f"left running on `{start.request.host}`: the container `{start.name}`")


def _nothing_to_create_from(start: StartContext, name: str) -> NotFound:
    """Return the error that lists the host's containers and images."""
    host, engine, typed = start.host, start.engine, start.request.container or name
    images = ("--filter=dangling=false", "--format={{.Repository}}:{{.Tag}}")
    listing = host.run(
        {
            "containers": command_line(engine("ps", "--all", "--format={{.Names}}")),
            "images": command_line(engine("images", *images)),
        }
    )
    there = "; ".join(f"its {kind}: {_some(done.stdout)}" for kind, done in listing.items())
    known = sessions.find(host.name, name)
    image = shlex.quote(known.image) if known and known.image else "IMAGE"
    near = closest(name, filter(is_name, listing["containers"].stdout.split()))
    meant = f"did you mean `{near}`? " if near else ""
    return NotFound(
        f"there is no container `{name}` on `{host.name}`, and no image to create it from",
        hint=f"{meant}`jlr start {host.name} {typed} --image {image}` creates it; {there}",
    )


def _some(text: str) -> str:
    lines = [line for line in printable(text).split("\n") if line]
    return listed(lines, LISTED) or "none"
