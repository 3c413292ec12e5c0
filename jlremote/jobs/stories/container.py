"""Jobs in a container of their own: create and start it, with what the command needs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from jlremote.containers import new_container
from jlremote.containers.host_folders import prepared
from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.gpus import allocation
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.hosts.requests import RunRequest, StartContext
from jlremote.images.commands import inspect_image_argv
from jlremote.images.stories import registry
from jlremote.jobs.containers import COMMAND_LABEL, GPUS_LABEL, REMOVE_LABEL
from jlremote.jobs.notebook import as_typed
from jlremote.jobs.stories import process
from jlremote.jobs.stories.process import ANOTHER_NAME
from jlremote.place.host.contract import Completed, Steps, run_script, understood
from jlremote.place.host.kept_jobs import ProcessPlan
from jlremote.place.host.shell_text import command_line, wait_while
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker import docker_errors
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.place.runtimes.runtime import JOB_LABEL, START_LABEL, ContainerSpec
from jlremote.place.runtimes.scripts import packages, variables
from jlremote.selection import naming
from jlremote.untrusted import document

_LACKS = 123  # what it was to be created with: a shell, or a program for `--init`
_NOT_STARTED = "jlr-not-started"


def begin(start: StartContext, request: RunRequest) -> tuple[StartContext, str]:
    """Run a command as the main process of a new container.

    Return the context that created it, and the script that starts it in a terminal; that is empty
    for a job that runs.

    Raises:
        Busy: there is a container of that name.
        Usage: nothing would keep what it prints.
        JlrError: it could not begin; the rollback of `start` removes what is left.
    """
    if start.request.options.keeps_no_log:
        raise Usage(
            "`--log-driver=none` keeps nothing of what a job prints, which jlr reads there",
            hint="`jlr config` shows whether `engine-arguments` of the settings has it",
        )
    image, start = start.request.image or "", prepared(start)
    with start.context.progress.step(f"Run {start.name} from {image}"):
        made = _begun(start, image, request)
        if made is None:
            registry.fetch(start.host, start.engine, image, start.context)
            made = _begun(start, image, request)
    if made is None:
        raise NotFound(f"the image `{image}` is missing although it was pulled")
    wanted = start.request.options.packages
    new_container.install(made[0], wanted, partial(packages.install_for_job, start.name))
    return made


def _begun(start: StartContext, image: str, request: RunRequest) -> tuple[StartContext, str] | None:
    """Create and start the container; return `None` if the image is not on the host."""
    command = request.command
    before = _before(start)
    entrypoint = _entrypoint(start, image) if before else ()
    if entrypoint is None:
        return None
    gpus = allocation.take_or_promise(start, detached=request.detach)
    options = start.request.options
    options = replace(options, environment=(*gpus.in_container, *options.environment))
    spec = ContainerSpec(
        start.name,
        image,
        options=options,
        gpus=gpus.engine,
        script=before,
        interactive=request.interactive or request.terminal,
        terminal=request.terminal,
    )
    mark = secrets.token_hex(8)
    start.undo.callback(new_container.remove_marked, start, mark)
    labels = {
        **gpus.labels,
        **naming.label(start.request.container, start.name),
        START_LABEL: mark,
        JOB_LABEL: start.name,
        COMMAND_LABEL: as_typed(command),
        REMOVE_LABEL: "yes" if request.remove else "",
        GPUS_LABEL: gpus.shown or "",
    }
    if gpus.wait is not None:
        return _waiting(start, request, spec, (entrypoint, labels, gpus))
    later = request.terminal and not request.detach
    engine, spec, done = _attempted(start, spec, (*entrypoint, *command), labels, gpus, later)
    if done.status == _LACKS:
        _do_without_shell(start, image)
        spec = replace(spec, script="")
        engine, spec, done = _attempted(start, spec, command, labels, gpus, later)
    if done.status == 0:
        if gpus.engine is None and done.stdout.strip():
            made = start.runtime.read(spec.name, {"container": done})
            allocation.prove(start, None, made.engine_gpus if made else None)
        starting = _in_terminal(engine, spec.name, gpus, request.detach_keys) if later else ""
        return start.with_engine(engine), starting
    if docker_errors.image_missing(done):
        allocation.give_back(start, gpus)
        return None
    if "already in use by container" in done.stderr:
        raise Busy(f"a container `{spec.name}` already exists", hint=ANOTHER_NAME)
    raise docker_errors.creation_error(engine, spec, done)


def _waiting(
    start: StartContext,
    request: RunRequest,
    spec: ContainerSpec,
    how: tuple[Argv, Mapping[str, str], AllocatedGpus],
) -> tuple[StartContext, str] | None:
    """Begin a job that waits on the host and then creates its container there.

    Return `None` if the image is not on the host.

    Raises:
        Busy: there is a container or job of that name.
        Usage: what it wants needs the laptop once the container runs.
    """
    entrypoint, labels, gpus = how
    if start.request.options.packages or spec.interactive:
        raise Usage(
            "`--install`, `-i` and `-t` cannot be combined with a wait on the host",
            hint="leave out `--detach` to wait from here",
        )
    if _entrypoint(start, spec.image) is None:
        return None
    engine = new_container.foreseen_engine(start)
    taken = run_script(start.host, command_line(docker.inspect_argv(engine, spec.name)))
    if taken.status == 0:
        raise Busy(f"a container `{spec.name}` already exists", hint=ANOTHER_NAME)
    tries = [(spec, (*entrypoint, *request.command))]
    if spec.script:  # the image may have no shell for it
        tries.append((replace(spec, script=""), request.command))
    if spec.options.init is not False:  # the engine may have no program for it
        without = replace(spec.options, init=False)
        tries += [(replace(each, options=without), argv) for each, argv in tries]
    steps = [_steps(engine, each, argv, labels, gpus, later=False) for each, argv in tries]
    wait = {
        **(gpus.wait or {}),
        "create": [each["create"] for each in steps],
        "again": _LACKS,
        "pid": docker.state_argv(engine, spec.name, "Pid"),
        "remove": command_line(docker.remove_argv(engine, spec.name)),
    }
    plan = ProcessPlan(
        start.name,
        argv=(),
        shown=as_typed(request.command),
        container=spec.name,
        gpus=wait["gpus"],
        mark=labels[START_LABEL],
        remove=request.remove,
        wait=wait,
    )
    process.launched(start.with_engine(engine), plan)
    return start.with_engine(engine), ""


def _attempted(
    start: StartContext,
    spec: ContainerSpec,
    argv: Argv,
    labels: Mapping[str, str],
    gpus: AllocatedGpus,
    later: bool,
) -> tuple[Engine, ContainerSpec, Completed]:
    """Try to begin it, or only to create it; return the engine and what it made, and the result."""

    def attempt(engine: Engine, spec: ContainerSpec) -> Completed:
        return start.host.run(_steps(engine, spec, argv, labels, gpus, later))["create"]

    return new_container.attempted(start.engine, spec, start.request, start.context, attempt)


def _do_without_shell(start: StartContext, image: str) -> None:
    """Note what a job lacks whose image has no shell; refuse to install packages in it."""
    if start.request.options.packages:
        raise JlrError(
            f"`{image}` has no `sh`, and `--install` needs one",
            hint="use an image with a shell and Python, or leave out `--install`",
        )
    start.note(
        f"`{start.name}` may have no writable HOME: `{image}` has no `sh` to set one; "
        "use `--env HOME=FOLDER`"
    )


def _steps(
    engine: Engine,
    spec: ContainerSpec,
    argv: Argv,
    labels: Mapping[str, str],
    gpus: AllocatedGpus,
    later: bool,
) -> Steps:
    """Return the steps that create it, and unless it is started `later` run it."""
    create = docker.job_argv(engine, spec, argv, labels)
    job = new_container.with_owner(create, spec.options.environment)
    begin = _with_shell if spec.script else _begin
    start = ":" if later else command_line(docker.start_argv(engine, spec.name))
    script = f"""\
{new_container.unless_missing(engine, spec.image)}said=$({{ {job} >/dev/null; }} 2>&1) || {{
  printf '%s\n' "$said" >&2
  case $said in {docker_errors.INIT_MISSING}) exit {_LACKS};; *) exit 125;; esac
}}
{begin(engine, spec.name, start)}
{command_line(docker.inspect_argv(engine, spec.name))} 2>/dev/null || :"""
    return {"create": script} | ({} if later else gpus.keep_for(engine, spec.name))


def _in_terminal(engine: Engine, name: str, gpus: AllocatedGpus, keys: str | None) -> str:
    """Return the script that starts it in a terminal, and meanwhile makes it hold its GPUs."""
    running = command_line(docker.state_argv(engine, name, "Running"))
    wait = wait_while(f'[ "$({running})" != true ]', 20, every=0.2, too_long="exit")
    keep = "".join(gpus.keep_for(engine, name).values())
    aside = f"({wait}status=0\n{keep}) </dev/null >/dev/null 2>&1 &\n" if keep else ""
    return f"{aside}{command_line(docker.start_attached_argv(engine, name, keys))}\n"


def _begin(engine: Engine, name: str, start: str) -> str:
    remove = command_line(docker.remove_argv(engine, name))
    return f"{start} >/dev/null || {{ {remove} >/dev/null; exit 126; }}"


def _with_shell(engine: Engine, name: str, start: str) -> str:
    """Return the script that starts a container, and meanwhile checks that it has a shell.

    Under `--init` a missing program ends the container only after its start.
    """
    remove, look = (
        command_line(make(engine, name)) for make in (docker.remove_argv, docker.shell_argv)
    )
    return f"""\
said=$({{ {look} 2>&1 >/dev/null; }} & {start} >/dev/null || echo {_NOT_STARTED}; wait)
case $said in
*{_NOT_STARTED}*) {remove} >/dev/null; exit 126;;
*'ould not find the file'*|*'could not be found on container'*)
  {remove} >/dev/null; exit {_LACKS};;
esac"""


def _before(start: StartContext) -> str:
    """Return the script that runs before the image's entrypoint, empty for none."""
    options = start.request.options
    with_user = options.user is not None
    own_home = any(item.startswith("HOME=") for item in options.environment)
    home = variables.writable_home(start.name) if with_user and not own_home else ""
    wait = packages.until_installed(start.name) if options.packages else ""
    return home + wait


def _entrypoint(start: StartContext, image: str) -> Argv | None:
    """Return an image's own entrypoint, `None` if the image is not on the host."""
    done = run_script(start.host, command_line(inspect_image_argv(start.engine, image)))
    if done.status != 0:
        return None
    with understood("the container engine"):
        config = document(done.stdout)[0].get("Config") or {}
        # An empty word stands for no entrypoint in images that `jlr save` made.
        return tuple(str(word) for word in config.get("Entrypoint") or () if word)
