"""Begin jobs in a container of their own: create and start it, with what the command needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from jlremote.containers import new_container
from jlremote.containers.host_folders import prepared
from jlremote.errors import Busy, Usage
from jlremote.gpus import allocation
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.hosts.requests import RunRequest, StartContext
from jlremote.images.image_commands import inspect_image_argv
from jlremote.jobs import begin_process
from jlremote.jobs.begin_process import ANOTHER_NAME
from jlremote.jobs.command_file import as_typed
from jlremote.jobs.engine_jobs import COMMAND_LABEL, GPUS_LABEL, REMOVE_LABEL
from jlremote.place.host.contract import Completed, Steps, run_script, understood
from jlremote.place.host.kept_jobs import ProcessPlan
from jlremote.place.host.shell_text import command_line, wait_while
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker import docker_errors
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.place.runtimes.runtime import JOB_LABEL, ContainerSpec
from jlremote.place.runtimes.scripts import packages, variables
from jlremote.untrusted import document

_NO_INIT = 123  # the exit status where the engine has no program for `--init`
_NO_SHELL = 122  # the same where the image has none, and the command needs one before it


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
            "`--log-driver=none` discards a job's output, which jlr needs",
            hint="leave it out after `--`, and in `engine-arguments` of the settings",
        )
    image, start = start.request.image or "", prepared(start)
    with start.context.progress.step(f"Run {start.name} from {image}"):
        entrypoint = new_container.with_image(start, image, lambda: _entrypoint(start, image))
        return _begun(start, image, request, entrypoint)


@dataclass(frozen=True)
class _NewContainer:
    """A container that is about to be created, and how."""

    spec: ContainerSpec
    argv: Argv  # behind the image
    labels: Mapping[str, str]
    gpus: AllocatedGpus
    later: bool = False  # whether it is only created, and started in a terminal

    def steps(self, engine: Engine) -> Steps:
        """Return the steps that create the container, and run it unless it is started `later`."""
        spec = self.spec
        create = docker.job_argv(engine, spec, self.argv, self.labels)
        job = new_container.with_owner(create, spec.options.environment)
        remove = command_line(docker.remove_argv(engine, spec.name))
        start = ":" if self.later else command_line(engine("start", spec.name))
        script = f"""\
{new_container.unless_missing(engine, spec.image)}said=$({{ {job} >/dev/null; }} 2>&1) || {{
  printf '%s\n' "$said" >&2
  case $said in {docker_errors.INIT_MISSING}) exit {_NO_INIT};; *) exit 125;; esac
}}
{_with_shell(engine, spec.name) if spec.script else ""}\
{start} >/dev/null || {{ {remove} >/dev/null; exit 126; }}
{command_line(docker.inspect_argv(engine, spec.name))} 2>/dev/null || :"""
        return {"create": script} | ({} if self.later else self.gpus.keep_for(engine, spec.name))

    def attempted(self, start: StartContext) -> tuple[Engine, ContainerSpec, Completed]:
        """Try to create it; return the engine, what it was asked for, and the result."""

        def attempt(engine: Engine, spec: ContainerSpec) -> Completed:
            return start.host.run(replace(self, spec=spec).steps(engine))["create"]

        return new_container.attempted(
            start.engine, self.spec, start.request, start.context, attempt
        )


def _begun(
    start: StartContext, image: str, request: RunRequest, entrypoint: Argv
) -> tuple[StartContext, str]:
    gpus = allocation.take_or_promise(start, detached=request.detach)
    new = _new_container(start, image, request, gpus)
    start.undo.callback(new_container.remove_marked, start)
    if new.spec.script:
        new = replace(new, argv=(*entrypoint, *new.argv))
    if gpus.wait is not None:
        return _waiting(start, request, new)
    engine, spec, done = new.attempted(start)
    if done.status == 0:
        if gpus.engine is None and done.stdout.strip():
            made = start.runtime.read(spec.name, {"container": done})
            allocation.prove(start, None, made.engine_gpus if made else None)
        keys = request.detach_keys
        starting = _in_terminal(engine, spec.name, gpus, keys) if new.later else ""
        return start.with_engine(engine), starting
    if "already in use by container" in done.stderr:
        raise Busy(f"a container `{spec.name}` already exists", hint=ANOTHER_NAME)
    error = docker_errors.creation_error(engine, spec, done, start.request.host)
    if done.status == _NO_SHELL:
        error.hint = "`-e HOME=FOLDER` with a folder that can be written needs no `sh` in the image"
        if start.request.options.packages:
            error.hint = "use an image with a shell and Python, or leave out `--install`"
    raise error


def _new_container(
    start: StartContext, image: str, request: RunRequest, gpus: AllocatedGpus
) -> _NewContainer:
    spec = new_container.spec_of(start, image, gpus, _before(start))
    interactive = request.interactive or request.terminal
    spec = replace(spec, interactive=interactive, terminal=request.terminal)
    labels = {
        **new_container.labels(start, gpus),
        JOB_LABEL: start.name,
        COMMAND_LABEL: as_typed(request.command),
        REMOVE_LABEL: "yes" if request.remove else "",
        GPUS_LABEL: gpus.shown or "",
    }
    later = request.terminal and not request.detach
    return _NewContainer(spec, request.command, labels, gpus, later)


def _waiting(
    start: StartContext, request: RunRequest, new: _NewContainer
) -> tuple[StartContext, str]:
    tries, spec = [new], new.spec
    if spec.interactive:
        raise Usage(
            "`-i` and `-t` cannot be combined with a wait on the host",
            hint="leave out `--detach` to wait from here",
        )
    engine = start.engine
    taken = run_script(start.host, command_line(docker.inspect_argv(engine, spec.name)))
    if taken.status == 0:
        raise Busy(f"a container `{spec.name}` already exists", hint=ANOTHER_NAME)
    if spec.options.init is not False:  # the engine may have no program for it
        without = replace(spec.options, init=False)
        tries.append(replace(new, spec=replace(spec, options=without)))
    wait = {
        **(new.gpus.wait or {}),
        "create": [each.steps(engine)["create"] for each in tries],
        "again": _NO_INIT,
        "pid": docker.state_argv(engine, spec.name, "Pid"),
        "remove": command_line(docker.remove_argv(engine, spec.name)),
    }
    plan = ProcessPlan(
        start.name,
        argv=(),
        shown=as_typed(request.command),
        container=spec.name,
        gpus=wait["gpus"],
        mark=start.mark,
        remove=request.remove,
        wait=wait,
    )
    begin_process.launched(start, plan)
    return start, ""


def _with_shell(engine: Engine, name: str) -> str:
    remove = command_line(docker.remove_argv(engine, name))
    return f"""\
said=$({command_line(engine("cp", f"{name}:/bin/sh", "-"))} 2>&1 >/dev/null) || case $said in
*'ould not find the file'*|*'could not be found on container'*)
  {remove} >/dev/null; echo 'its image has no `sh`' >&2; exit {_NO_SHELL};;
esac
"""


def _in_terminal(engine: Engine, name: str, gpus: AllocatedGpus, keys: str | None) -> str:
    running = command_line(docker.state_argv(engine, name, "Running"))
    wait = wait_while(f'[ "$({running})" != true ]', 20, every=0.2, too_long="exit")
    keep = "".join(gpus.keep_for(engine, name).values())
    aside = f"({wait}status=0\n{keep}) </dev/null >/dev/null 2>&1 &\n" if keep else ""
    return f"{aside}{command_line(docker.attach_argv(engine, name, keys, start=True))}\n"


def _before(start: StartContext) -> str:
    options = start.request.options
    with_user = options.user is not None
    own_home = any(item.startswith("HOME=") for item in options.environment)
    home = variables.writable_home(start.name) if with_user and not own_home else ""
    return home + (packages.before_job(options.packages) if options.packages else "")


def _entrypoint(start: StartContext, image: str) -> Argv | None:
    """Return the entrypoint of an image, `None` if the host does not have the image."""
    done = run_script(start.host, command_line(inspect_image_argv(start.engine, image)))
    if done.status != 0:
        return None
    with understood("the container engine"):
        config = document(done.stdout)[0].get("Config") or {}
        # An empty word stands for no entrypoint in images that `jlr image save` made.
        return tuple(str(word) for word in config.get("Entrypoint") or () if word)
