"""Jobs that are processes of the host: the command itself, or the engine's client for it."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import replace

from jlremote.containers import image_definition
from jlremote.errors import Busy, JlrError, NotFound
from jlremote.gpus import allocation, leases
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.hosts.requests import RunRequest, StartContext, StartRequest
from jlremote.jobs.notebook import as_typed, is_notebook
from jlremote.jupyter.survey import survey
from jlremote.laptop import sessions
from jlremote.laptop.records import hint_of_missing
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host import kept_jobs, process_mark
from jlremote.place.host.contract import Completed, run_script, understood
from jlremote.place.host.kept_jobs import ProcessPlan
from jlremote.place.host.shell_text import KEEP_ODD_VARIABLES
from jlremote.place.runtimes.bare import Bare
from jlremote.place.runtimes.runtime import Attachment, Container
from jlremote.place.runtimes.scripts import packages, variables
from jlremote.remote.sending import NO_PYTHON, OLDEST
from jlremote.selection import naming
from jlremote.selection.host_search import candidates
from jlremote.text import one_line
from jlremote.untrusted import whole_number

ANOTHER_NAME = "choose another name: `--name NAME`"
_FIRST_SIZE = os.terminal_size((80, 24))  # until one is attached
DISK_HINT = "`df -h ~`, `df -i ~` and `quota -s` there show what is full, `mount` what is read-only"


def begin(start: StartContext, request: RunRequest) -> str:
    """Run a command as a process of the host, or in a session's container.

    Return the script that shows its terminal from the beginning, empty without one.
    """
    known, within = session(request), None
    place = start.request.host if known is None else known.name
    if _in_session(start, request):
        container = _container(start, request)
        place, within = container.name, allocation.within(start, container)
    bare = replace(start, runtime=Bare())
    gpus = allocation.take_or_promise(bare, detached=request.detach, within=within)
    plan = _plan(start, request, place, gpus)
    with start.context.progress.step(f"Run {start.name}"):
        done = launched(start, plan)
    if gpus.lease is not None:
        with understood("the shell"):
            pid, started, *_ = done.stdout.split()
            keep = leases.keep(gpus.lease, whole_number(pid), started)
        run_script(start.host, keep)
    if not request.terminal:
        return ""
    return kept_jobs.JOBS.attach(start.name, request.detach_keys, first=True)


def launched(start: StartContext, plan: ProcessPlan) -> Completed:
    """Launch a job; return what the host said.

    Raises:
        Busy: there is a job of that name.
        JlrError: the host cannot launch it.
    """
    start.undo.callback(_take_back, start, plan.mark)
    done = run_script(start.host, kept_jobs.launch(plan))
    if done.status == kept_jobs.TAKEN:
        raise Busy(f"a job `{start.name}` already exists", hint=ANOTHER_NAME)
    if done.status == NO_PYTHON and plan.wait is not None:
        oldest = ".".join(map(str, kept_jobs.WAITERS_PYTHON))
        raise JlrError(
            f"cannot wait on `{start.request.host}`: it has no Python from {oldest} on",
            hint="`jlr run … --wait` without `--detach` waits from here",
        )
    if done.status == kept_jobs.NO_FOLDER:
        home = f"your home on `{start.request.host}`"
        raise JlrError(f"cannot write the job's files in {home}: {done.complaint}", hint=DISK_HINT)
    if done.status == NO_PYTHON:
        oldest = ".".join(map(str, OLDEST))
        raise NotFound(
            f"`jlr run` needs Python {oldest} or later on `{start.request.host}`",
            hint=f"`jlr shell {_shell_of(start, plan)} --keep -- COMMAND` runs it in tmux",
        )
    if done.status != 0:
        raise JlrError(f"cannot start the job: {done.complaint}")
    if plan.wait is not None:
        start.note(f"`{start.name}` waits on the host: {one_line(plan.wait['why'])}")
    return done


def _shell_of(start: StartContext, plan: ProcessPlan) -> str:
    """Return what `jlr shell` calls the place where the command runs."""
    host = start.request.host
    return host if plan.container is None else f"{host}/{plan.container}"


def _in_session(start: StartContext, request: RunRequest) -> bool:
    """Return whether the command runs in a session, which is not the host itself."""
    apart = start.runtime.has_images or start.runtime.in_jobs
    return apart and not _from_image(request)


def _from_image(request: RunRequest) -> bool:
    """Return whether the command runs in an image of its own, and not in a session's."""
    return request.inside is None and request.wanted.image is not None


def _container(start: StartContext, request: RunRequest) -> Container:
    """Return the session's container, which must run (`NotFound`)."""
    typed = (request.inside or "").rpartition("/")[2]
    if (known := session(request)) is not None:
        looks = iter([(known.name, survey(start.host, start.runtime, known.name))])
    else:
        looks = candidates(start.host, start.runtime, typed)
    look = next((found for _, found in looks if found.container), None)
    found = look.container if look else None
    if look is not None and found is not None:
        agreed = known is not None and known.shared
        naming.refuse_other_owner(start.request.host, found.name, look.owner, agreed=agreed)
    if found is not None and found.running:
        return found
    state, begin = (found.stands, "starts it") if found else ("is missing", "creates it")
    image = "" if found else " --image IMAGE"
    raise NotFound(
        f"the container `{found.name if found else typed}` {state}",
        hint=hint_of_missing(
            [] if found else sessions.load_all(),
            f"{start.request.host}/{typed}",
            f"`jlr start {start.request.host} {typed}{image}` {begin}; "
            "`--image IMAGE` runs the command in a new container",
        ),
    )


def _plan(start: StartContext, request: RunRequest, place: str, gpus: AllocatedGpus) -> ProcessPlan:
    options, runtime, mark = start.request.options, start.runtime, secrets.token_hex(8)
    given = dict(item.split("=", 1) for item in options.environment)
    plain, private = variables.parted(given)
    how = Attachment(user=options.user, workdir=options.workdir, mark=mark)
    if request.terminal:
        keys = kept_jobs.ENGINES_KEYS if runtime.has_containers else None
        how = replace(how, terminal=_FIRST_SIZE, detach_keys=keys)
    take = _taking(request, private, mark) if private else ""
    signal: tuple[str, ...] = ()
    exports = allocation.exports(gpus)
    if not runtime.has_containers:
        taking = ("sh", "-c", f'{take}exec "$@"', "sh", *request.command)
        command = taking if take else request.command
        if runtime.has_images and _from_image(request):
            argv = image_definition.entered(start, command, how, plain)
            exports += image_definition.JOB_FOLDER
        else:
            argv = runtime.attached(place, command, how, plain)
    else:
        # The process is marked to be signalled, because signals end at the engine's client.
        before = take + variables.writable_home(place) + packages.USE + KEEP_ODD_VARIABLES
        if is_notebook(request.command):  # as in kernels of the session
            before += packages.hint_at_pip_in_job(f"{start.request.host}/{place}", place)
        before += process_mark.MARK_ITSELF
        marked = ("sh", "-c", before + kept_jobs.adopting(), "sh", *request.command)
        plain = {**gpus.environment, **plain, process_mark.VARIABLE: mark}
        argv = runtime.attached(place, marked, how, plain)
        way = process_mark.signal_argv(mark)
        signal = runtime.attached(place, way, Attachment(user=options.user), {})
    return ProcessPlan(
        name=start.name,
        argv=argv,
        shown=as_typed(request.command),
        container=place if _in_session(start, request) else None,
        gpus=gpus.wait["gpus"] if gpus.wait else gpus.shown or "",
        exports="" if runtime.has_containers else exports,
        signal=signal,
        variables=private,
        mark=mark,
        sweep=runtime.sweep(place, mark, options.user),
        remove=request.remove,
        interactive=request.interactive,
        wait=gpus.wait,
        terminal=request.terminal,
    )


def _taking(request: RunRequest, private: str, mark: str) -> str:
    """Return what begins the command's script: it takes its variables."""
    if request.terminal:
        return variables.take_typed(private, mark)
    return variables.take_first(private) if request.interactive else variables.TAKE


def _take_back(start: StartContext, mark: str) -> None:
    with suppress(JlrError):
        run_script(start.host, kept_jobs.take_back(start.name, mark))


def session(request: RunRequest) -> SessionRecord | None:
    """Return the session of `--in`, `None` if this laptop has no record of it."""
    if request.inside is None:
        return None
    name = naming.remembered(StartRequest(request.wanted.host, request.inside.rpartition("/")[2]))
    return None if name is None else sessions.find(request.wanted.host, name)
