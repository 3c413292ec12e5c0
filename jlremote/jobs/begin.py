"""`jlr run`: begin a job on a host, in a container or as a process."""

from __future__ import annotations

import re
import secrets
import shlex
from contextlib import ExitStack
from dataclasses import replace
from pathlib import PurePosixPath

from jlremote.errors import Busy, JlrError, Usage
from jlremote.hosts.context import Context, known_way
from jlremote.hosts.engines import engine_on
from jlremote.hosts.links import connect, link_to
from jlremote.hosts.requests import EngineChoice, RunRequest, StartContext
from jlremote.hosts.rollback import undone_on_failure
from jlremote.images import image_names
from jlremote.jobs import begin_on_host, begin_scheduled, command_file
from jlremote.jobs.begin_on_host import ANOTHER_NAME
from jlremote.jobs.command_file import INTERPRETER
from jlremote.jobs.engine_jobs import ContainerJobs
from jlremote.jobs.known_jobs import JobHandle, engine_of, find, is_taken
from jlremote.jobs.scheduled_jobs import ScheduledJobs
from jlremote.laptop import desktop, job_records, sessions
from jlremote.laptop.job_records import JobRecord
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.laptop.typed_place import host_word
from jlremote.link.client.link import Link
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.table import runtime_named, runtime_of
from jlremote.selection import naming


def run(request: RunRequest, context: Context) -> list[JobHandle]:
    """Begin a job and return it, or the jobs of an array; a failure leaves nothing behind.

    Raise `Usage` if it is not given where to run, `Busy` if a job, a session or a container has
    that name.
    """
    typed = request.wanted.container or _name(request.command)
    runtime = check(request)
    runtime.check_name(typed)
    context = known_way(request.wanted.host, context)
    host = connect(link_to(request.wanted.host, context), context)
    of_session = begin_on_host.session(request) is not None
    if request.scheduled is None and runtime.has_containers and not of_session:
        choice = EngineChoice(request.wanted.runtime, request.wanted.sudo)
        runtime = Containers(engine_on(host, choice))
    request = command_file.with_place(request, runtime)
    begun: list[JobHandle] = []
    starting = ""
    with undone_on_failure() as undo:
        start = _start_context(host, runtime, request, typed, context, undo)
        if request.scheduled is not None:
            begun = begin_scheduled.begin(start, request, request.scheduled)
        elif request.inside is None and runtime.has_containers:
            start, starting = begin_on_host.begin_container(start, request)
        else:
            begin_on_host.begin_process(start, request)
        marks = {each.job.name: each.job.mark for each in begun} or {start.name: start.mark}
        for name, mark in marks.items():
            undo.callback(job_records.delete, host.name, name)
            job_records.save(_record(start, name, mark))
        if begun:
            return begun
        return [replace(find(f"{host.name}/{start.name}", context), starting=starting)]


def check(request: RunRequest) -> Runtime:
    """Refuse what needs no host to be refused; return where the job is to run."""
    runtime = _runtime(request)
    if runtime.has_containers and request.wanted.image is not None and request.inside is None:
        image_names.check(request.wanted.image)
    if request.wanted.container is not None:
        runtime.check_name(request.wanted.container)
    _check_terminal(request, runtime)
    return runtime


def _runtime(request: RunRequest) -> Runtime:
    if request.scheduled is not None:
        chosen = "none" if request.wanted.image is None else request.wanted.runtime
        return runtime_named(chosen if chosen in ("none", *IMAGE_RUNTIMES) else IMAGE_RUNTIMES[0])
    if (known := begin_on_host.session(request)) is not None:
        return runtime_of(known)
    runtime = runtime_named(request.wanted.runtime, sudo=request.wanted.sudo)
    if request.inside is not None and not runtime.has_images:
        what = f"`--in {request.inside}` needs a container, and `--runtime none` has none"
        hint = "leave out one of the two"
        raise Usage(what, hint=hint)
    if runtime.has_images and request.wanted.image is None and request.inside is None:
        raise Usage(
            "choose where to run: `--image`, `--in`, `--runtime none` or `--slurm`",
            hint="`--image IMAGE` creates a container, `--in SESSION` uses that of a session, "
            "`--runtime none` runs on the host itself, and `--slurm` on a node of its cluster",
        )
    return runtime


def _check_terminal(request: RunRequest, runtime: Runtime) -> None:
    if request.scheduled is not None and (request.interactive or request.terminal):
        raise Usage(
            f"a job of a cluster gets no {'terminal' if request.terminal else 'stdin'}",
            hint="`jlr shell` in a session of the cluster has both; or put the input into a file "
            "there, and redirect it in the command",
        )
    own = request.inside is None and runtime.has_containers
    if own or not (request.interactive or request.terminal):
        return
    host, inside = request.wanted.host, request.inside
    place = host_word(host) if inside is None else f"{host}/{inside}"
    if inside is None and request.wanted.image is not None:  # an image that is a file
        place = "SESSION"
    keep = ("--keep",) if request.terminal else ()
    line = shlex.join(("jlr", "shell", place, *keep, "--", *request.command))
    hint = f"`{line}` {'keeps it in tmux' if request.terminal else 'passes stdin to it'}"
    raise Usage(f"`-{'t' if request.terminal else 'i'}` is for a job in a new container", hint=hint)


def _start_context(
    host: Link, runtime: Runtime, request: RunRequest, typed: str, context: Context, undo: ExitStack
) -> StartContext:
    wanted = replace(request.wanted, container=typed)
    own = request.inside is None and runtime.has_containers
    name = naming.names(wanted, host)[0] if own else typed
    runtime.check_name(name)
    if sessions.find(request.wanted.host, name) is not None:
        raise Busy(f"a session `{name}` already exists", hint=ANOTHER_NAME)
    if request.wanted.container is not None and is_taken(host, runtime.engine, name):
        raise Busy(f"a job `{name}` already exists", hint=ANOTHER_NAME)
    return StartContext(host, runtime, name, wanted, context, undo)


def _record(start: StartContext, name: str, mark: str) -> JobRecord:
    config = start.context.ssh_config
    where = None if config is None else str(config.resolve())
    typed = None if start.request.container == start.name else start.request.container
    return JobRecord(start.request.host, name, start.runtime.name, where, typed, mark)


def _name(command: tuple[str, ...]) -> str:
    words = [word for word in command[1:] if re.fullmatch(r"[\w./][\w./-]*", word)]
    program = PurePosixPath(command[0])
    if words and INTERPRETER.fullmatch(program.name):
        module = command[1:2] == ("-m",)
        program = PurePosixPath(words[0].rpartition(".")[2] if module else words[0])
    stem = re.sub(r"[^a-zA-Z0-9_.-]+", "-", program.stem).strip("-._")[:24]
    return f"{stem or 'job'}-{secrets.token_hex(2)}"


def watch(handle: JobHandle, context: Context) -> None:
    """Have the link notify of a job's end, whatever becomes of this command."""
    backend = handle.backend
    kind = "scheduled" if isinstance(backend, ScheduledJobs) else "processes"
    if isinstance(backend, ContainerJobs):
        kind = backend.engine.name
    elif handle.job.waits_for_gpus and handle.job.container == handle.job.name:
        engine = engine_of(handle.host)  # which has it after its wait
        kind = engine.name if engine else kind
    handle.host.watch_job(handle.job.name, handle.job.key, kind)
    try:
        desktop.check()
    except JlrError as none:
        context.progress.note(f"{none.message}; `jlr config notify` tries it")


def tell_end(handle: JobHandle, code: int, context: Context) -> None:
    """Announce that a job has ended, unless the link has done so."""
    if handle.host.unwatch_job(handle.job.name):
        context.progress.announce(handle.selector, replace(handle.job, exit_code=code).ending)
