"""`jlr run`: a command that runs on a host by itself, in a container or without one."""

from __future__ import annotations

import re
import secrets
import shlex
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.gpus import leases
from jlremote.host.script import command_line
from jlremote.host.shell import run_script
from jlremote.jobs import processes
from jlremote.jobs.containers import GPUS_LABEL, JOB_LABEL
from jlremote.jobs.processes import ProcessPlan
from jlremote.runtimes import docker_commands as docker
from jlremote.runtimes import docker_errors
from jlremote.runtimes.bare import Bare
from jlremote.runtimes.container_options import NO_OPTIONS, ContainerOptions
from jlremote.runtimes.containers import Containers
from jlremote.runtimes.contract import START_LABEL, Attachment, ContainerSpec, Runtime
from jlremote.runtimes.table import AUTO, runtime_named
from jlremote.storage import jobs as records
from jlremote.storage import sessions
from jlremote.storage.jobs import JobRecord
from jlremote.workflow import creating, gpu_taking, registry
from jlremote.workflow.context import Context
from jlremote.workflow.engines import engine_on
from jlremote.workflow.gpu_taking import Taken
from jlremote.workflow.jobs import Found, find
from jlremote.workflow.links import connect, link_to
from jlremote.workflow.requests import EngineChoice, StartRequest
from jlremote.workflow.undertaking import Undertaking
from jlremote.workflow.undoing import undone_on_failure
from jlremote.workflow.ways import known_way

ANOTHER_NAME = "choose another name: `--name NAME`"


@dataclass(frozen=True)
class RunRequest:
    """`jlr run HOST -- COMMAND`.

    Attributes:
        host: whatever `ssh HOST` takes.
        command: what is to run.
        name: what the job is to be called; `None` lets us choose.
        inside: the session, or any container of the host, that it is to run in.
        runtime: `auto`, an engine, or `none`.
        sudo: whether the engine is to be driven by `sudo`.
        image: of the container that is made for it.
        workspace: see `StartRequest`.
        options: what else that is to be; of these, any job takes environment, folder and user.
        gpus: see `StartRequest`.
        share_gpus: whether others may be on them.
        remove: whether the engine removes the container when it ends.
    """

    host: str
    command: tuple[str, ...]
    name: str | None = None
    inside: str | None = None
    runtime: str = "auto"
    sudo: bool = False
    image: str | None = None
    workspace: str | None = None
    options: ContainerOptions = NO_OPTIONS
    gpus: str | None = None
    share_gpus: bool = False


def run(request: RunRequest, context: Context) -> Found:
    """Begin a job and return it; it goes on whatever becomes of us.

    Raises:
        Usage: nothing says where it is to run.
        Busy: there is a job, a session or a container of that name.
        JlrError: it could not begin, and nothing of it is left behind.
    """
    name = request.name or _name(request.command)
    known, place = _where(request)
    (known or runtime_named(AUTO)).check_name(name)
    if sessions.find(request.host, name) is not None:
        raise Busy(f"there is a session `{name}` already", hint=ANOTHER_NAME)
    context = known_way(request.host, context)
    host = link_to(request.host, context)
    with undone_on_failure() as undo:
        start = StartRequest(
            request.host,
            name,
            image=request.image,
            options=request.options,
            workspace=request.workspace,
            gpus=request.gpus,
            share_gpus=request.share_gpus,
        )
        connect(host, context)
        runtime = known or Containers(engine_on(host, EngineChoice(AUTO, request.sudo)))
        this = Undertaking(host, runtime, name, start, context, undo)
        if request.inside is None and runtime.engine:
            _in_container(this, request.command)
        else:
            _as_process(this, request, place)
        record = _record(request, name, runtime, context)
        undo.callback(records.delete, record.host, record.name)
        records.save(record)
        return find(f"{record.host}/{record.name}", context)


def _where(request: RunRequest) -> tuple[Runtime | None, str]:
    """Return in what it is to run, `None` if only the host can tell, and the name of that."""
    if request.inside is not None:
        host, _, name = request.inside.rpartition("/")
        if host not in ("", request.host):
            raise Usage(
                f"`{request.inside}` is not on `{request.host}`",
                hint=f"`jlr run {host} --in {name} -- …`",
            )
        known = sessions.find(request.host, name)
        return runtime_named(known.runtime) if known else _named(request), name
    runtime = _named(request)
    if (runtime is None or runtime.engine) and request.image is None:
        raise Usage(
            "nothing says where the command is to run",
            hint="in a new container: `--image IMAGE`; in a session's: `--in SESSION`; on the host "
            "itself: `--runtime none`",
        )
    return runtime, request.host


def _named(request: RunRequest) -> Runtime | None:
    """Return the runtime that was asked for, if one was."""
    return runtime_named(request.runtime, sudo=request.sudo) if request.runtime != AUTO else None


def _record(request: RunRequest, name: str, runtime: Runtime, context: Context) -> JobRecord:
    config = context.ssh_config
    where = None if config is None else str(config.resolve())
    return JobRecord(request.host, name, runtime.name, where)


def _name(command: tuple[str, ...]) -> str:
    """Return a name that tells what runs, and that no other job has."""
    words = [word for word in command[1:] if re.fullmatch(r"[\w./][\w./-]*", word)]
    told = PurePosixPath(command[0])
    if words and re.fullmatch(r"(python|sh|bash|torchrun)[\d.]*", told.name):
        module = command[1:2] == ("-m",)
        told = PurePosixPath(words[0].rpartition(".")[2] if module else words[0])
    stem = re.sub(r"[^a-zA-Z0-9_.-]+", "-", told.stem).strip("-._")[:24]
    return f"{stem or 'job'}-{secrets.token_hex(2)}"


def _in_container(this: Undertaking, command: tuple[str, ...]) -> None:
    """Run it as the main process of a container of its own."""
    image, this = this.request.image or "", creating.prepare(this)
    with this.context.progress.step(f"Run {this.name} from {image}"):
        made = _begun(this, image, command)
    if not made:
        registry.fetch(this.host, this.engine, image, this.context)
        with this.context.progress.step(f"Run {this.name}"):
            made = _begun(this, image, command)
    if not made:
        raise NotFound(f"the image `{image}` is not there, though it was pulled")


def _begun(this: Undertaking, image: str, command: tuple[str, ...]) -> bool:
    """Create and start its container in one round trip; tell whether the image is on the host."""
    engine, gpus = this.engine, gpu_taking.take(this)
    options = this.request.options
    environment = (*gpus.in_container, *options.environment)
    options = replace(options, environment=environment)
    spec = ContainerSpec(this.name, image, options=options, gpus=gpus.engine)
    mark = secrets.token_hex(8)
    this.undo.callback(creating.remove_marked, this, mark)
    labels = {**gpus.labels, START_LABEL: mark, JOB_LABEL: this.name, GPUS_LABEL: gpus.shown or ""}
    made = creating.with_owner(engine, docker.job_argv(engine, spec, command, labels))
    begin, remove = docker.start_argv(engine, spec.name), docker.remove_argv(engine, spec.name)
    script = (
        f"{made} >/dev/null || exit 125\n"
        f"{command_line(begin)} >/dev/null || {{ {command_line(remove)} >/dev/null; exit 126; }}"
    )
    done = this.host.run({"create": script} | gpus.keep_for(engine, spec.name))["create"]
    if done.status == 0:
        return True
    if docker_errors.image_missing(done):
        return False
    if "already in use by container" in done.stderr:
        raise Busy(f"there is a container `{spec.name}` already", hint=ANOTHER_NAME)
    raise docker_errors.creation_error(engine, spec, done)


def _as_process(this: Undertaking, request: RunRequest, place: str) -> None:
    """Run it as a process of the host's: itself, or the engine's client for a container."""
    if this.runtime.engine:
        _check_runs(this, place)
    gpus = gpu_taking.take(replace(this, runtime=Bare()))
    plan = _plan(this, request, place, gpus)
    this.undo.callback(_take_back, this, plan.mark)
    with this.context.progress.step(f"Run {this.name}"):
        done = run_script(this.host, processes.launch(plan))
    if done.status == processes.TAKEN:
        raise Busy(f"there is a job `{this.name}` already", hint=ANOTHER_NAME)
    if done.status != 0:
        raise JlrError(f"the job could not begin: {done.complaint}")
    if gpus.lease is not None:
        pid, start, *_ = done.stdout.split()
        run_script(this.host, leases.keep(gpus.lease, int(pid), start))


def _check_runs(this: Undertaking, place: str) -> None:
    found = this.runtime.read(place, this.host.run(this.runtime.survey(place, ":")))
    if found is None or not found.running:
        state = "does not run" if found else "is not there"
        raise NotFound(
            f"the container `{place}` {state}",
            hint=f"`jlr start {this.request.host} {place}` starts it; "
            "`--image IMAGE` runs the command in one of its own",
        )


def _plan(this: Undertaking, request: RunRequest, place: str, gpus: Taken) -> ProcessPlan:
    options, runtime, mark = request.options, this.runtime, secrets.token_hex(8)
    for item in options.environment:
        if "=" not in item:
            raise Usage(f"`--env {item}` has no value", hint=f"write `--env {item}=VALUE`")
    given = dict(item.split("=", 1) for item in options.environment)
    how = Attachment(user=options.user, workdir=options.workdir)
    if runtime.engine is None:
        argv = runtime.attached(place, request.command, how, given)
        signal: tuple[str, ...] = ()
    else:
        # Its own process, marked: signals end at the engine's client.
        marked = ("sh", "-c", processes.MARKED, "sh", *request.command)
        variables = {**gpus.environment, **given, "JLR_JOB": mark}
        argv = runtime.attached(place, marked, how, variables)
        way = processes.signal_marked(mark)
        signal = runtime.attached(place, way, Attachment(user=options.user), {})
    return ProcessPlan(
        name=this.name,
        argv=argv,
        shown=shlex.join(request.command),
        container=place if runtime.engine else None,
        gpus=gpus.shown or "",
        exports="" if runtime.engine else gpu_taking.exports(gpus),
        signal=signal,
        mark=mark,
    )


def _take_back(this: Undertaking, mark: str) -> None:
    with suppress(JlrError):
        run_script(this.host, processes.take_back(this.name, mark))
