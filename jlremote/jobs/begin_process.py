"""Begin jobs that are processes of the host: the command, or the engine's client for it."""

from __future__ import annotations

from dataclasses import replace

from jlremote.containers import image_definition
from jlremote.errors import Busy, JlrError, NotFound
from jlremote.gpus import allocation, leases, wait
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.hosts.requests import RunRequest, StartContext, StartRequest
from jlremote.jobs.command_file import as_typed
from jlremote.laptop import sessions
from jlremote.laptop.record_files import hint_of_missing
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.typed_place import host_word
from jlremote.place.host import kept_jobs, process_mark
from jlremote.place.host.contract import Completed, attempt, run_script, understood
from jlremote.place.host.kept_jobs import ProcessPlan
from jlremote.place.host.shell_text import KEEP_ODD_VARIABLES
from jlremote.place.runtimes.processes import Bare
from jlremote.place.runtimes.runtime import Attachment, Container
from jlremote.place.runtimes.scripts import packages, variables
from jlremote.remote.sending import NO_PYTHON, OLDEST
from jlremote.selection import naming
from jlremote.selection.host_search import running
from jlremote.text import one_line
from jlremote.untrusted import whole_number

ANOTHER_NAME = "choose another name: `--name NAME`"
DISK_HINT = "`df -h ~`, `df -i ~` and `quota -s` there show what is full, `mount` what is read-only"


def begin(start: StartContext, request: RunRequest) -> None:
    """Run a command as a process of the host, or in a session's container."""
    known, within = session(request), None
    name = start.request.host if known is None else known.name
    if _in_session(start, request):
        container = _container(start, request)
        name, within = container.name, allocation.within(start, container)
    bare = replace(start, runtime=Bare())
    gpus = allocation.take_or_promise(bare, detached=request.detach, within=within)
    plan = _plan(start, request, name, gpus)
    with start.context.progress.step(f"Run {start.name}"):
        done = launched(start, plan)
    if gpus.lease is not None:
        with understood("the shell"):
            pid, started, *_ = done.stdout.split()
            keep = leases.keep(gpus.lease, whole_number(pid), started)
        run_script(start.host, keep)


def launched(start: StartContext, plan: ProcessPlan) -> Completed:
    """Launch a job; return what the host said.

    Raises:
        Busy: there is a job of that name.
        JlrError: the host cannot launch it.
    """
    start.undo.callback(attempt, start.host, kept_jobs.take_back(start.name, plan.mark))
    done = run_script(start.host, kept_jobs.launch(plan))
    if done.status == kept_jobs.TAKEN:
        raise Busy(f"a job `{start.name}` already exists", hint=ANOTHER_NAME)
    if done.status == NO_PYTHON and plan.wait is not None:
        raise wait.no_python(start.request.host)
    if done.status == kept_jobs.NO_FOLDER:
        home = f"your home on `{start.request.host}`"
        raise JlrError(f"cannot write the job's files in {home}: {done.complaint}", hint=DISK_HINT)
    if done.status == NO_PYTHON:
        oldest, host = ".".join(map(str, OLDEST)), start.request.host
        where = host_word(host) if plan.container is None else f"{host}/{plan.container}"
        raise NotFound(
            f"`jlr run` needs Python {oldest} or later on `{host}`",
            hint=f"`jlr shell {where} --keep -- COMMAND` runs it in tmux",
        )
    if done.status != 0:
        raise JlrError(f"cannot start the job: {done.complaint}")
    if plan.wait is not None:
        start.note(f"`{start.name}` waits on the host: {one_line(plan.wait['why'])}")
    return done


def _in_session(start: StartContext, request: RunRequest) -> bool:
    own_image = request.inside is None and request.wanted.image is not None
    return not (start.runtime.on_host or own_image)


def _container(start: StartContext, request: RunRequest) -> Container:
    typed, known = request.inside or "", session(request)
    agreed = known is not None and known.shared
    container = running(start.host, start.runtime, typed, known, as_shared=agreed)
    if container is not None:
        return container
    raise NotFound(
        f"the container `{typed}` is missing",
        hint=hint_of_missing(
            sessions.load_all(),
            f"{start.request.host}/{typed}",
            f"`jlr start {start.request.host} {typed} --image IMAGE` creates it; "
            "`--image IMAGE` runs the command in a new container",
        ),
    )


def _plan(start: StartContext, request: RunRequest, name: str, gpus: AllocatedGpus) -> ProcessPlan:
    options, runtime, mark = start.request.options, start.runtime, start.mark
    given = dict(item.split("=", 1) for item in options.environment)
    plain, private = variables.parted(given)
    how = Attachment(user=options.user, workdir=options.workdir, mark=mark)
    take = variables.TAKE if private else ""
    plan = ProcessPlan(
        name=start.name,
        argv=(),
        shown=as_typed(request.command),
        container=name if _in_session(start, request) else None,
        gpus=gpus.wait["gpus"] if gpus.wait else gpus.shown or "",
        variables=private,
        mark=mark,
        sweep=runtime.sweep(name, mark, options.user),
        remove=request.remove,
        wait=gpus.wait,
    )
    if runtime.has_containers:
        return _in_container(start, request, plan, how, take, {**gpus.environment, **plain})
    command = request.command
    if take:
        command = ("sh", "-c", f'{take}exec "$@"', "sh", *command)
    exports = allocation.exports(gpus)
    if runtime.has_images and plan.container is None:
        argv = image_definition.entered(start, command, how, plain)
        return replace(plan, argv=argv, exports=exports + image_definition.JOB_FOLDER)
    return replace(plan, argv=runtime.attached(name, command, how, plain), exports=exports)


def _in_container(
    start: StartContext,
    request: RunRequest,
    plan: ProcessPlan,
    how: Attachment,
    take: str,
    plain: dict[str, str],
) -> ProcessPlan:
    """Add the engine's client, and how to signal its command: signals end at that client."""
    name, runtime = plan.container or "", start.runtime
    before = take + variables.writable_home(name) + packages.USE + KEEP_ODD_VARIABLES
    before += process_mark.MARK_ITSELF
    marked = ("sh", "-c", before + kept_jobs.adopting(), "sh", *request.command)
    way = process_mark.signal_argv(plan.mark)
    return replace(
        plan,
        argv=runtime.attached(name, marked, how, {**plain, process_mark.VARIABLE: plan.mark}),
        signal=runtime.attached(name, way, Attachment(user=how.user), {}),
    )


def session(request: RunRequest) -> SessionRecord | None:
    """Return the session of `--in`, `None` if this laptop has no record of it."""
    if request.inside is None:
        return None
    return naming.remembered(StartRequest(request.wanted.host, request.inside))
