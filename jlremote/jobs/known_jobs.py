"""The jobs of a host: find, list, stop and delete them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_if_any
from jlremote.hosts.links import link_of, link_on
from jlremote.hosts.requests import LogRequest, StopRequest
from jlremote.jobs import engine_jobs
from jlremote.jobs.engine_jobs import ContainerJobs
from jlremote.jobs.scheduled_jobs import ScheduledJobs
from jlremote.laptop import job_records, sessions
from jlremote.laptop.record_files import hint_of_missing, matching
from jlremote.laptop.typed_place import leash, off_leash, resolved
from jlremote.link.client.link import Link
from jlremote.place.host import kept_jobs
from jlremote.place.host.contract import run_script
from jlremote.place.host.job import Job
from jlremote.place.host.kept_jobs import ProcessJobs
from jlremote.place.runtimes.engine.engine_errors import engine_error
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.table import runtime_named
from jlremote.selection import destruction
from jlremote.selection.destruction import Destruction
from jlremote.text import one_line
from jlremote.untrusted import moment

COMMAND_NOT_FOUND = 127
STOP_SECONDS = 120.0  # a scheduler waits with SIGKILL for as long as its site has chosen
SCHEDULED = ScheduledJobs()

Backend = ContainerJobs | ProcessJobs | ScheduledJobs
Show = Callable[[str, bytes], None]  # given `stdout` or `stderr`, and a piece of it


class EngineRefused(JlrError):
    """The engine of a host does not list its containers."""


@dataclass(frozen=True)
class JobHandle:
    """A job, with the link to its host and the backend that runs it there."""

    host: Link
    backend: Backend
    job: Job
    starting: str = ""  # the script that shows its terminal from the beginning, if it has one

    @property
    def selector(self) -> str:
        return f"{self.host.name}/{self.job.name}"

    def again(self) -> Job:
        """Ask the host for the present state."""
        engine = self.backend.engine if isinstance(self.backend, ContainerJobs) else None
        job = _one(self.host, engine, self.job.name).job
        self._check_same(job, replaced=job.key != self.job.key)
        return job

    def begun(self) -> JobHandle:
        """Return the job after its wait; the engine may have it by then."""
        later = _one(self.host, engine_of(self.host), self.job.name)
        self._check_same(later.job)
        return later

    def _check_same(self, job: Job, *, replaced: bool = False) -> None:
        if replaced or (self.job.mark and job.mark and job.mark != self.job.mark):
            what = f"the job `{self.selector}` was deleted, and another has its name now"
            raise NotFound(what)


def find(selector: str | None, context: Context) -> JobHandle:
    """Return the job called `NAME` or `HOST/NAME`, the latest of this laptop by default.

    Raise `NotFound` if there is none, `Usage` if the name stands for jobs on several hosts.
    """
    record = job_records.choose(selector)
    if record is not None:
        return _one(link_of(record, context), runtime_named(record.runtime).engine, record.name)
    typed = resolved(str(selector), context.ssh_config)
    if typed.session is not None:
        hint = f"`jlr open {typed.session.selector}` opens it"
        raise NotFound(f"`{selector}` is a session and not a job", hint=hint)
    if typed.host is None:
        raise NotFound(
            f"no job `{selector}` was started on this machine",
            hint=hint_of_missing(
                job_records.load_all(),
                str(selector),
                "`jlr job list` lists the jobs; name another laptop's as HOST/NAME",
            ),
        )
    if typed.name is None:
        hint = f"`jlr job list {typed.host}` lists its jobs"
        raise NotFound(f"`{typed.host}` is a host and not a job", hint=hint)
    link = link_on(typed.host, context)
    return _one(link, engine_of(link), typed.name)


def meant(selector: str | None, context: Context) -> JobHandle | None:
    """Return the job that a selector of a session or job names, `None` for no job.

    Sessions known on this laptop take precedence. A host is asked only about unknown names.
    """
    if selector is None or matching(sessions.load_all(), selector):
        return None
    if matching(job_records.load_all(), selector):
        return find(selector, context)
    typed = resolved(selector, context.ssh_config)
    if typed.host is None or typed.name is None:
        return None
    link = link_on(typed.host, context)
    try:
        return _one_of(_all(link, engine_of(link), typed.name), typed.name)
    except EngineRefused:  # it may be a session
        return None


def is_taken(host: Link, engine: Engine | None, name: str) -> bool:
    """Return whether a host has a job of that full name, as far as it can be asked."""
    try:
        handles = _all(host, engine or _of_jobs(host), name)
    except EngineRefused:
        return False
    return any(each.job.name == name for each in handles)


def log(handle: JobHandle, show: Show, wanted: LogRequest) -> None:
    """Show the last lines of a job's output, with `follow` to its end (`Usage`: no such log)."""
    if wanted.container:
        raise Usage(f"`{handle.selector}` is a job", hint="leave out `--container`")
    key, backend = handle.job.key, handle.backend
    script = backend.log(key, wanted.tail, follow=wanted.follow, since=wanted.since)
    with handle.host.process(script) as process:
        for stream, data in process:
            show(stream, data)
    if wanted.follow and handle.job.waits_for_gpus and (later := _begun(handle)) is not None:
        log(later, show, wanted)


def listed(host: str | None, context: Context) -> Iterator[tuple[str, Job]]:
    """Yield host and job for the jobs of a host, or of each host with a job of this laptop.

    Raise `JlrError` if the host cannot be asked; of several hosts that is only noted.
    """
    for link in _links(host, context):
        try:
            handles = _all(link, engine_of(link))
        except JlrError as failure:
            if host is not None:
                raise
            context.progress.note(f"cannot list the jobs of `{link.name}`: {failure.message}")
        else:
            yield from ((link.name, each.job) for each in handles)


def clean(host: str | None, context: Context, *, yes: bool) -> list[str]:
    """Delete one's own jobs that are over, with their output; return their names.

    On `host` all of them, else those that were started on this laptop (`JlrError`: a no).
    """
    here = {(each.host, each.name, each.mark) for each in job_records.load_all() if each.mark}
    over = [
        handle
        for link in _links(host, context)
        for handle in _all(link, engine_of(link))
        if handle.job.over
        and (host is not None or (link.name, handle.job.name, handle.job.mark) in here)
    ]
    losses = tuple(f"the job {handle.selector} and its output" for handle in over)
    question = f"Delete {len(over)} job{'s' if len(over) != 1 else ''}?"
    destruction.confirm(Destruction(question, losses), context, yes=yes)
    for handle in over:
        remove(handle)
    return [handle.selector for handle in over]


def stop(handle: JobHandle, request: StopRequest, context: Context) -> list[str]:
    """Stop a job, at once by `force`; return what was done (`JlrError`: it goes on, or a no)."""
    state = "waiting" if handle.job.waits_for_gpus else "running"
    runs = f"the {state} job {handle.selector}: {one_line(handle.job.command)}"
    losses = [runs] if request.destroys and not handle.job.over else []
    losses += [f"the output and exit code of {handle.selector}"] if request.remove else []
    question = f"{'Delete' if request.remove else 'Kill'} the job {handle.selector}?"
    destruction.confirm(Destruction(question, tuple(losses)), context, yes=request.yes)
    done = []
    if not handle.job.over:
        text = handle.backend.stop(handle.job.key, force=request.force)
        with context.progress.step(f"Stop {handle.job.name}"):
            ended = run_script(handle.host, text, timeout=STOP_SECONDS)
        if ended.status != 0:
            raise JlrError(f"cannot stop `{handle.selector}`: {ended.complaint}")
        if handle.job.waits_for_gpus and (later := _begun(handle)) is not None:
            return stop(later, replace(request, yes=True), context)
        ended_it = "killed the job" if request.force else "stopped the job"
        done.append("took it out of the queue" if handle.job.waits_for_gpus else ended_it)
    if request.remove:
        remove(handle)
        done.append("deleted it and its output")
    return done or ["it had already ended"]


def _begun(handle: JobHandle) -> JobHandle | None:
    """Return a waiting job that already has a container; its waiter did not answer."""
    with suppress(NotFound):
        later = handle.begun()
        return later if later.job.key != handle.job.key else None
    return None


def remove(handle: JobHandle) -> None:
    """Delete a job that is over, and its output (`JlrError`: it could not be deleted)."""
    done = run_script(handle.host, handle.backend.remove(handle.job.key))
    if done.status != 0:
        raise JlrError(f"cannot delete `{handle.selector}`: {done.complaint}")
    job_records.delete(handle.host.name, handle.job.name)


def _links(host: str | None, context: Context) -> list[Link]:
    if host is not None:
        return [link_on(host, context)]
    ways = {(r.host, r.ssh_config): r for r in reversed(job_records.load_all())}
    return [link_of(record, context) for record in ways.values()]


def engine_of(host: Link) -> Engine:
    """Return the engine of a host's latest job in a container, else of its latest session."""
    return _of_jobs(host) or engine_if_any(host)


def _of_jobs(host: Link) -> Engine | None:
    runtimes = (runtime_named(r.runtime) for r in job_records.load_all() if r.host == host.name)
    return next((r.engine for r in runtimes if r.engine), None)


def _one(host: Link, engine: Engine | None, name: str) -> JobHandle:
    handle = _one_of(_all(host, engine, name), name)
    if handle is None:
        job_records.delete(host.name, name)
        hint = f"`jlr job list {host.name}` lists its jobs"
        raise NotFound(f"there is no job `{name}` on `{host.name}`", hint=hint)
    return handle


def _one_of(handles: Sequence[JobHandle], name: str) -> JobHandle | None:
    """Return the job of that name, off no leash; a full name takes precedence over a typed one."""
    found = min(handles, key=lambda each: each.job.name != name, default=None)
    if found is not None and (only := leash()) is not None:
        inside = only.session.container if only.session else only.name
        if (found.host.name, found.job.container) != (only.host, inside):
            raise off_leash(f"the job `{found.selector}` does not run in that session", only)
    return found


def _all(host: Link, engine: Engine | None, name: str | None = None) -> list[JobHandle]:
    """Return the user's jobs on a host, the latest first, in one round trip.

    Raise `EngineRefused` if no process job was found, and the engine does not list its containers.
    """
    backends: dict[str, Backend] = {"processes": ProcessJobs(), "scheduled": SCHEDULED}
    if engine is not None:
        backends["containers"] = ContainerJobs(engine)
    tell = {step: backend.tell(name) for step, backend in backends.items()}
    answers = host.run({"clock": "date +%s", **tell})
    jobs = {
        "processes": kept_jobs.read(answers["processes"].stdout),
        "scheduled": SCHEDULED.read(answers["scheduled"].stdout),
    }
    if engine is not None and (answer := answers["containers"]).status == 0:
        jobs["containers"] = engine_jobs.read(answer.stdout)
        names = {job.name for job in jobs["containers"]}
        # A job that waited is listed twice for a moment, until its container is all of it.
        jobs["processes"] = [
            job for job in jobs["processes"] if not (job.waits_for_gpus and job.name in names)
        ]
    elif engine is not None and answer.status != COMMAND_NOT_FOUND and not any(jobs.values()):
        why = engine_error(engine, answer)
        raise EngineRefused(why.message, hint=why.hint)
    now = moment(answers["clock"].stdout)
    handles = [
        JobHandle(host, backends[step], job if step == "scheduled" else job.by_our_clock(now))
        for step, found in jobs.items()
        for job in found
    ]
    return sorted(handles, key=lambda each: -(each.job.since or 0.0))
