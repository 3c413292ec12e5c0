"""The container of a job: made and started, with what its command needs to find there."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from jlremote.errors import Busy, JlrError, NotFound
from jlremote.host.script import Completed, Steps, command_line
from jlremote.host.shell import run_script
from jlremote.images.commands import inspect_image_argv
from jlremote.jobs.containers import COMMAND_LABEL, GPUS_LABEL, JOB_LABEL
from jlremote.runtimes.contract import START_LABEL, ContainerSpec
from jlremote.runtimes.docker import docker_commands as docker
from jlremote.runtimes.docker import docker_errors
from jlremote.runtimes.engine.engine import Argv, Engine
from jlremote.runtimes.scripts import homes, packages
from jlremote.workflow.container import creation, gpu_allocation, old_docker, package_install
from jlremote.workflow.container.gpu_allocation import Taken
from jlremote.workflow.container.start_context import Undertaking
from jlremote.workflow.images import registry
from jlremote.workflow.jobs.job_process import ANOTHER_NAME
from jlremote.workflow.selection import naming

_NO_SHELL = 123
_NOT_STARTED = "jlr-not-started"


def begin(this: Undertaking, command: Argv) -> Undertaking:
    """Run a command as the main process of a container of its own; return what has made that.

    Raises:
        Busy: there is a container of that name.
        JlrError: it could not begin; whoever called takes back what there is of it.
    """
    image, this = this.request.image or "", creation.prepare(this)
    with this.context.progress.step(f"Run {this.name} from {image}"):
        made = _begun(this, image, command)
        if made is None:
            registry.fetch(this.host, this.engine, image, this.context)
            made = _begun(this, image, command)
    if made is None:
        raise NotFound(f"the image `{image}` is not there, though it was pulled")
    wanted = this.request.options.packages
    package_install.install(made, wanted, partial(packages.install_for_job, this.name))
    return made


def _begun(this: Undertaking, image: str, command: Argv) -> Undertaking | None:
    """Create and start its container; `None` if the image is not on the host."""
    before = _before(this)
    entrypoint = _entrypoint(this, image) if before else ()
    if entrypoint is None:
        return None
    gpus = gpu_allocation.take(this)
    options = this.request.options
    options = replace(options, environment=(*gpus.in_container, *options.environment))
    spec = ContainerSpec(this.name, image, options=options, gpus=gpus.engine, script=before)
    mark = secrets.token_hex(8)
    this.undo.callback(creation.remove_marked, this, mark)
    labels = {
        **gpus.labels,
        **naming.label(this.request.container, this.name),
        START_LABEL: mark,
        JOB_LABEL: this.name,
        COMMAND_LABEL: shlex.join(command),
        GPUS_LABEL: gpus.shown or "",
    }
    engine, done = _attempted(this, spec, (*entrypoint, *command), labels, gpus)
    if done.status == _NO_SHELL:
        _do_without_shell(this, image)
        engine, done = _attempted(this, replace(spec, script=""), command, labels, gpus)
    if done.status == 0:
        return creation.by(engine, this)
    if docker_errors.image_missing(done):
        gpu_allocation.give_back(this, gpus)
        return None
    if "already in use by container" in done.stderr:
        raise Busy(f"there is a container `{spec.name}` already", hint=ANOTHER_NAME)
    raise docker_errors.creation_error(engine, spec, done)


def _attempted(
    this: Undertaking, spec: ContainerSpec, argv: Argv, labels: Mapping[str, str], gpus: Taken
) -> tuple[Engine, Completed]:
    """Attempt to begin it; return by which engine, and how that ended."""
    return old_docker.attempted(
        this.engine,
        this.request,
        this.context,
        lambda engine: this.host.run(_steps(engine, spec, argv, labels, gpus))["create"],
    )


def _do_without_shell(this: Undertaking, image: str) -> None:
    """Say what a job lacks whose image has no shell.

    Raises:
        JlrError: it cannot do without.
    """
    if this.request.options.packages:
        raise JlrError(
            f"`{image}` has no `sh`, and `--install` needs one",
            hint="leave out `--install`, or take an image with a shell and Python",
        )
    this.context.progress.note(
        f"`{this.name}` may have no HOME that it can write to: `{image}` has no `sh` to set one; "
        "`--env HOME=FOLDER` does"
    )


def _steps(
    engine: Engine, spec: ContainerSpec, argv: Argv, labels: Mapping[str, str], gpus: Taken
) -> Steps:
    """Return the steps that create and start it, and let it hold its GPUs."""
    job = creation.with_owner(docker.job_argv(engine, spec, argv, labels))
    begin = _with_shell if spec.script else _begin
    script = (
        f"{creation.unless_missing(engine, spec.image)}{job} >/dev/null || exit 125\n"
        f"{begin(engine, spec.name)}"
    )
    return {"create": script} | gpus.keep_for(engine, spec.name)


def _begin(engine: Engine, name: str) -> str:
    start, remove = docker.start_argv(engine, name), docker.remove_argv(engine, name)
    return f"{command_line(start)} >/dev/null || {{ {command_line(remove)} >/dev/null; exit 126; }}"


def _with_shell(engine: Engine, name: str) -> str:
    """Return the script that starts a container, and looks meanwhile whether it has a shell.

    Under `--init` a program that is not there ends the container only once it has started.
    """
    start, remove, look = (
        command_line(make(engine, name))
        for make in (docker.start_argv, docker.remove_argv, docker.shell_argv)
    )
    return f"""\
said=$({{ {look} 2>&1 >/dev/null; }} & {start} >/dev/null || echo {_NOT_STARTED}; wait)
case $said in
*{_NOT_STARTED}*) {remove} >/dev/null; exit 126;;
*'ould not find the file'*|*'could not be found on container'*)
  {remove} >/dev/null; exit {_NO_SHELL};;
esac"""


def _before(this: Undertaking) -> str:
    """Return what runs in front of the image's entrypoint, if anything is to."""
    options = this.request.options
    as_somebody = options.user is not None
    own_home = any(item.startswith("HOME=") for item in options.environment)
    home = homes.writable_home(this.name) if as_somebody and not own_home else ""
    wait = packages.until_installed(this.name) if options.packages else ""
    return home + wait


def _entrypoint(this: Undertaking, image: str) -> Argv | None:
    """Return an image's own entrypoint, `None` if it is not on the host."""
    done = run_script(this.host, command_line(inspect_image_argv(this.engine, image)))
    if done.status != 0:
        return None
    config = json.loads(done.stdout)[0].get("Config") or {}
    return tuple(config.get("Entrypoint") or ())
