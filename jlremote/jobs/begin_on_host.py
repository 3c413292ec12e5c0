"""Begin jobs that a host runs by itself: in containers of their own, or as processes.

A process is the command, or the engine's client for it in a session's container.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from jlremote.containers import image_definition, new_container
from jlremote.containers.host_folders import prepared
from jlremote.errors import Busy, NotFound, Usage
from jlremote.gpus import allocation, leases
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.gpus.wait import launched
from jlremote.hosts.requests import RunRequest, StartContext, StartRequest
from jlremote.images.image_commands import inspect_image_argv
from jlremote.jobs.command_file import as_typed
from jlremote.jobs.engine_jobs import COMMAND_LABEL, GPUS_LABEL, REMOVE_LABEL
from jlremote.laptop import sessions
from jlremote.laptop.record_files import hint_of_missing
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host import kept_jobs, process_mark
from jlremote.place.host.contract import Completed, Steps, run_script, understood
from jlremote.place.host.kept_jobs import ProcessPlan
from jlremote.place.host.shell_text import KEEP_ODD_VARIABLES, command_line, wait_while
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker import docker_errors
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.place.runtimes.processes import Bare
from jlremote.place.runtimes.runtime import JOB_LABEL, Attachment, Container, ContainerSpec
from jlremote.place.runtimes.scripts import packages, variables
from jlremote.selection import naming
from jlremote.selection.host_search import running
from jlremote.untrusted import document, whole_number

ANOTHER_NAME = "choose another name: `--name NAME`"
_NO_INIT = 123  # the exit status where the engine has no program for `--init`


def begin_container(start: StartContext, request: RunRequest) -> tuple[StartContext, str]:
    """Run a command as the main process of a new container.

    Return the context that created it, and the script that starts it in a terminal; that is empty
    for a job that runs. Raise `Busy` if there is a container of that name, `Usage` if nothing would
    keep what it prints. The rollback of `start` removes what a failure leaves.
    """
    if start.request.options.keeps_no_log:
        hint = "leave it out after `--`, and in `engine-arguments` of the settings"
        raise Usage("`--log-driver=none` discards a job's output, which jlr needs", hint=hint)
    image, start = start.request.image or "", prepared(start)
    with start.context.progress.step(f"Run {start.name} from {image}"):
        entrypoint = new_container.with_image(start, image, lambda: _entrypoint(start, image))
        gpus = allocation.take_or_promise(start, detached=request.detach)
        new = _new_container(start, request, gpus, entrypoint)
        start.undo.callback(new_container.remove_marked, start)
        if gpus.wait is None:
            return _created(start, request, new)
        _launch_waiting(start, request, new)
        return start, ""


def _entrypoint(start: StartContext, image: str) -> Argv | None:
    """Return the entrypoint of an image, `None` if the host does not have the image."""
    done = run_script(start.host, command_line(inspect_image_argv(start.engine, image)))
    if done.status != 0:
        return None
    with understood("the container engine"):
        config = document(done.stdout)[0].get("Config") or {}
        # An empty word stands for no entrypoint in images that `jlr image save` made.
        return tuple(str(word) for word in config.get("Entrypoint") or () if word)


@dataclass(frozen=True)
class _NewContainer:
    """A container that is about to be created, and how."""

    spec: ContainerSpec
    argv: Argv  # behind the image
    labels: Mapping[str, str]
    gpus: AllocatedGpus
    later: bool  # whether it is only created, and started in a terminal

    def steps(self, engine: Engine, spec: ContainerSpec) -> Steps:
        """Return the steps that create the container, and run it unless it is started `later`."""
        create = docker.job_argv(engine, spec, self.argv, self.labels)
        job = new_container.with_owner(create, spec.options.environment)
        remove = command_line(docker.remove_argv(engine, spec.name))
        start = ":" if self.later else command_line(engine("start", spec.name))
        script = f"""\
{new_container.unless_missing(engine, spec.image)}said=$({{ {job} >/dev/null; }} 2>&1) || {{
  printf '%s\n' "$said" >&2
  case $said in {docker_errors.INIT_MISSING}) exit {_NO_INIT};; *) exit 125;; esac
}}
{start} >/dev/null || {{ {remove} >/dev/null; exit 126; }}
{command_line(docker.inspect_argv(engine, spec.name))} 2>/dev/null || :"""
        return {"create": script} | ({} if self.later else self.gpus.keep_for(engine, spec.name))


def _new_container(
    start: StartContext, request: RunRequest, gpus: AllocatedGpus, entrypoint: Argv
) -> _NewContainer:
    options = start.request.options
    before = packages.before_job(options.packages) if options.packages else ""
    if options.user is not None and not any(v.startswith("HOME=") for v in options.environment):
        before = variables.writable_home(start.name) + before
    spec = new_container.spec_of(start, start.request.image or "", gpus, before)
    interactive = request.interactive or request.terminal
    spec = replace(spec, interactive=interactive, terminal=request.terminal)
    labels = {
        **new_container.labels(start, gpus),
        JOB_LABEL: start.name,
        COMMAND_LABEL: as_typed(request.command),
        REMOVE_LABEL: "yes" if request.remove else "",
        GPUS_LABEL: gpus.shown or "",
    }
    argv = (*entrypoint, *request.command) if before else request.command
    return _NewContainer(spec, argv, labels, gpus, request.terminal and not request.detach)


def _created(
    start: StartContext, request: RunRequest, new: _NewContainer
) -> tuple[StartContext, str]:
    def create(engine: Engine, spec: ContainerSpec) -> Completed:
        return start.host.run(new.steps(engine, spec))["create"]

    engine, spec, done = new_container.attempted(
        start.engine, new.spec, start.request, start.context, create
    )
    if "already in use by container" in done.stderr and done.status != 0:
        raise Busy(f"a container `{spec.name}` already exists", hint=ANOTHER_NAME)
    if done.status != 0:
        raise docker_errors.creation_error(engine, spec, done, start.request.host)
    if new.gpus.engine is None and done.stdout.strip():
        made = start.runtime.read(spec.name, {"container": done})
        allocation.prove(start, None, made.engine_gpus if made else None)
    if not new.later:
        return start.with_engine(engine), ""
    state = command_line(docker.state_argv(engine, spec.name, "Running"))
    wait_for_it = wait_while(f'[ "$({state})" != true ]', 20, every=0.2, too_long="exit")
    keep = "".join(new.gpus.keep_for(engine, spec.name).values())
    aside = f"({wait_for_it}status=0\n{keep}) </dev/null >/dev/null 2>&1 &\n" if keep else ""
    begin = command_line(docker.attach_argv(engine, spec.name, request.detach_keys, start=True))
    return start.with_engine(engine), f"{aside}{begin}\n"


def _launch_waiting(start: StartContext, request: RunRequest, new: _NewContainer) -> None:
    specs, engine, name = [new.spec], start.engine, new.spec.name
    if new.spec.interactive:
        hint = "leave out `--detach` to wait from here"
        raise Usage("`-i` and `-t` cannot be combined with a wait on the host", hint=hint)
    taken = run_script(start.host, command_line(docker.inspect_argv(engine, name)))
    if taken.status == 0:
        raise Busy(f"a container `{name}` already exists", hint=ANOTHER_NAME)
    if new.spec.options.init is not False:  # the engine may have no program for it
        specs.append(replace(new.spec, options=replace(new.spec.options, init=False)))
    plan = {
        **(new.gpus.wait or {}),
        "create": [new.steps(engine, spec)["create"] for spec in specs],
        "again": _NO_INIT,
        "pid": docker.state_argv(engine, name, "Pid"),
        "remove": command_line(docker.remove_argv(engine, name)),
    }
    job = ProcessPlan(
        start.name,
        argv=(),
        shown=as_typed(request.command),
        container=name,
        gpus=plan["gpus"],
        mark=start.mark,
        remove=request.remove,
        wait=plan,
    )
    launched(start, job)


def begin_process(start: StartContext, request: RunRequest) -> None:
    """Run a command as a process of the host, or in a session's container."""
    known, within = session(request), None
    name = start.request.host if known is None else known.name
    own_image = request.inside is None and request.wanted.image is not None
    in_session = not (start.runtime.on_host or own_image)
    if in_session:
        container = _container(start, request)
        name, within = container.name, allocation.within(start, container)
    bare = replace(start, runtime=Bare())
    gpus = allocation.take_or_promise(bare, detached=request.detach, within=within)
    plan = _plan(start, request, name, gpus, in_session=in_session)
    with start.context.progress.step(f"Run {start.name}"):
        done = launched(start, plan)
    if gpus.lease is not None:
        with understood("the shell"):
            pid, started, *_ = done.stdout.split()
            keep = leases.keep(gpus.lease, whole_number(pid), started)
        run_script(start.host, keep)


def _container(start: StartContext, request: RunRequest) -> Container:
    host, typed, known = start.request.host, request.inside or "", session(request)
    agreed = known is not None and known.shared
    container = running(start.host, start.runtime, typed, known, as_shared=agreed)
    if container is not None:
        return container
    selector, creates = f"{host}/{typed}", f"`jlr start {host} {typed} --image IMAGE` creates it"
    hint = f"{creates}; `--image IMAGE` runs the command in a new container"
    hint = hint_of_missing(sessions.load_all(), selector, hint)
    raise NotFound(f"the container `{typed}` is missing", hint=hint)


def _plan(
    start: StartContext, request: RunRequest, name: str, gpus: AllocatedGpus, *, in_session: bool
) -> ProcessPlan:
    options, runtime, mark = start.request.options, start.runtime, start.mark
    plain, private = variables.parted(dict(item.split("=", 1) for item in options.environment))
    how = Attachment(user=options.user, workdir=options.workdir, mark=mark)
    take = variables.TAKE if private else ""
    argv, exports = request.command, allocation.exports(gpus)
    signal: Argv = ()
    if runtime.has_containers:
        before = take + variables.writable_home(name) + packages.USE + KEEP_ODD_VARIABLES
        before += process_mark.MARK_ITSELF
        argv = ("sh", "-c", before + kept_jobs.adopting(), "sh", *argv)
        plain, exports = {**gpus.environment, **plain, process_mark.VARIABLE: mark}, ""
        # Signals end at the engine's client.
        way = process_mark.signal_argv(mark)
        signal = runtime.attached(name, way, Attachment(user=options.user), {})
    elif take:
        argv = ("sh", "-c", f'{take}exec "$@"', "sh", *argv)
    if runtime.has_images and not in_session:
        argv = image_definition.entered(start, argv, how, plain)
        exports += image_definition.JOB_FOLDER
    else:
        argv = runtime.attached(name, argv, how, plain)
    return ProcessPlan(
        name=start.name,
        argv=argv,
        shown=as_typed(request.command),
        container=name if in_session else None,
        gpus=gpus.wait["gpus"] if gpus.wait else gpus.shown or "",
        exports=exports,
        signal=signal,
        variables=private,
        mark=mark,
        sweep=runtime.sweep(name, mark, options.user),
        remove=request.remove,
        wait=gpus.wait,
    )


def session(request: RunRequest) -> SessionRecord | None:
    """Return the session of `--in`, `None` if this laptop has no record of it."""
    if request.inside is None:
        return None
    return naming.remembered(StartRequest(request.wanted.host, request.inside))
