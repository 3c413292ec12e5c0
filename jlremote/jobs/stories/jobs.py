"""The jobs of a host: find, list, stop and delete them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_if_any
from jlremote.hosts.links import known_hosts, link_of, link_on
from jlremote.hosts.requests import LogRequest, StopRequest
from jlremote.jobs import containers
from jlremote.jobs.containers import ContainerJobs
from jlremote.jobs.scheduled import ScheduledJobs
from jlremote.laptop import jobs as records
from jlremote.laptop import sessions
from jlremote.laptop.records import hint_of_missing, matching
from jlremote.link.client.link import Link
from jlremote.place.clusters.slurm import SLURM
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
SCHEDULED = ScheduledJobs(SLURM)

Show = Callable[[str, bytes], None]  # given `stdout` or `stderr`, and a piece of it

_MOST_BYTES = 64 << 20  # of the end of a log


class EngineRefused(JlrError):
    """The engine of a host does not list its containers."""


@dataclass(frozen=True)
class JobHandle:
    """A job, with the link to its host and the backend that runs it there."""

    host: Link
    backend: ContainerJobs | ProcessJobs | ScheduledJobs
    job: Job
    starting: str = ""  # the script that shows its terminal from the beginning, if it has one

    @property
    def selector(self) -> str:
        return f"{self.host.name}/{self.job.name}"

    def again(self) -> Job:
        """Ask the host for its present state."""
        engine = self.backend.engine if isinstance(self.backend, ContainerJobs) else None
        job = _one(self.host, engine, self.job.name).job
        if job.key != self.job.key:
            raise self._replaced()
        self._check_same(job)
        return job

    def at_end(self) -> tuple[Job, Mapping[str, bytes] | None]:
        """Ask for its present state, and in the same round trip for the last of an engine's log."""
        if isinstance(self.backend, ContainerJobs):
            last: dict[str, bytes] = defaultdict(bytes)
            with self.host.process(self.backend.end(self.job.key)) as process:
                for stream, data in process:
                    last[stream] += data
                    if len(last[stream]) > _MOST_BYTES:
                        raise JlrError(f"the end of `{self.selector}` is too long to read")
            if process.status == 0:
                job, last["stdout"] = containers.at_end(last["stdout"])
                if job is not None:
                    return job, last
        return self.again(), None

    def begun(self) -> JobHandle:
        """Return the job after its wait: one in a new container is the engine's from then on."""
        later = _one(self.host, engine_of(self.host), self.job.name)
        self._check_same(later.job)
        return later

    def _check_same(self, job: Job) -> None:
        if self.job.mark and job.mark and job.mark != self.job.mark:
            raise self._replaced()

    def _replaced(self) -> NotFound:
        return NotFound(f"the job `{self.selector}` was deleted, and another has its name now")


def find(selector: str | None, context: Context) -> JobHandle:
    """Return the job called `NAME` or `HOST/NAME`, the latest of this laptop by default.

    Raises:
        NotFound: there is none.
        Usage: the name stands for jobs on several hosts.
    """
    record = records.choose(selector)
    if record is not None:
        return _one(link_of(record, context), runtime_named(record.runtime).engine, record.name)
    host, slash, name = (selector or "").rpartition("/")
    if not slash and name in known_hosts(context):
        raise NotFound(
            f"`{name}` is a host and not a job", hint=f"`jlr runs {name}` lists its jobs"
        )
    for session in matching(sessions.load_all(), selector or ""):
        raise NotFound(
            f"`{selector}` is a session and not a job",
            hint=f"`jlr open {session.host}/{session.name}` opens it",
        )
    if not slash:
        raise NotFound(
            f"no job `{selector}` was started on this machine",
            hint=hint_of_missing(
                records.load_all(),
                name,
                "`jlr runs HOST` lists the jobs of others; name one as HOST/NAME",
            ),
        )
    link = link_on(host, context)
    return _one(link, engine_of(link), name)


def meant(selector: str | None, context: Context) -> JobHandle | None:
    """Return the job that a selector of a session or job names, `None` for no job.

    Sessions known on this laptop take precedence. A host is asked only about unknown names.
    """
    if selector is None or matching(sessions.load_all(), selector):
        return None
    if matching(records.load_all(), selector):
        return find(selector, context)
    host, slash, name = selector.rpartition("/")
    if not slash:
        return None
    link = link_on(host, context)
    try:
        return _one_of(_all(link, engine_of(link), name), name)
    except EngineRefused:  # it may be a session
        return None


def is_taken(host: Link, engine: Engine | None, name: str) -> bool:
    """Return whether a host has a job of that full name, as far as it can be asked."""
    try:
        found = _all(host, engine or _of_jobs(host), name)
    except EngineRefused:
        return False
    return any(each.job.name == name for each in found)


def log(found: JobHandle, show: Show, wanted: LogRequest) -> None:
    """Show the last lines of a job's output, and with `follow` what comes until it ends.

    Raises:
        Usage: the job has no such log.
    """
    if wanted.container:
        raise Usage(f"`{found.selector}` is a job", hint="leave out `--container`")
    script = found.backend.log(found.job.key, wanted.tail, follow=wanted.follow, since=wanted.since)
    with found.host.process(script) as process:
        for stream, data in process:
            show(stream, data)
    if wanted.follow and found.job.waits_for_gpus:
        later = found.begun()
        if later.job.key != found.job.key:
            log(later, show, wanted)


def listed(host: str | None, context: Context) -> Iterator[tuple[str, Job]]:
    """Yield the jobs of a host, or of each where this laptop has started one, with its name.

    Raises:
        JlrError: the host cannot be asked; of several hosts that is only noted.
    """
    for link in _links(host, context):
        try:
            found = _all(link, engine_of(link))
        except JlrError as failure:
            if host is not None:
                raise
            context.progress.note(f"cannot list the jobs of `{link.name}`: {failure.message}")
        else:
            yield from ((link.name, each.job) for each in found)


def clean(host: str | None, context: Context, *, yes: bool) -> list[str]:
    """Delete one's own jobs that are over, with their output; return their names.

    On `host` all of them, else only those that were started on this laptop.

    Raises:
        JlrError: the person said no.
    """
    here = {(record.host, record.name, record.mark) for record in records.load_all() if record.mark}
    over = [
        found
        for link in _links(host, context)
        for found in _all(link, engine_of(link))
        if found.job.over
        and (host is not None or (link.name, found.job.name, found.job.mark) in here)
    ]
    losses = tuple(f"the job {found.selector} and its output" for found in over)
    question = f"Delete {len(over)} job{'s' if len(over) != 1 else ''}?"
    destruction.confirm(Destruction(question, losses), context, yes=yes)
    for found in over:
        remove(found)
    return [found.selector for found in over]


def stop(found: JobHandle, request: StopRequest, context: Context) -> list[str]:
    """Stop a job and return what was done: SIGTERM, and SIGKILL some time later or by `force`.

    With `remove` the job and its output are deleted afterwards.

    Raises:
        JlrError: it does not end, or the person said no.
    """
    destruction.confirm(_planned(found, request), context, yes=request.yes)
    done = []
    if not found.job.over:
        text = found.backend.stop(found.job.key, force=request.force)
        with context.progress.step(f"Stop {found.job.name}"):
            ended = run_script(found.host, text, timeout=STOP_SECONDS)
        if ended.status != 0:
            raise JlrError(f"cannot stop `{found.selector}`: {ended.complaint}")
        if found.job.waits_for_gpus and (later := _begun(found)) is not None:
            return stop(later, replace(request, yes=True), context)
        ended_it = "killed the job" if request.force else "stopped the job"
        done.append("took it out of the queue" if found.job.waits_for_gpus else ended_it)
    if request.remove:
        remove(found)
        done.append("deleted it and its output")
    return done or ["it had already ended"]


def _begun(found: JobHandle) -> JobHandle | None:
    """Return a job that waited if it has a container now, where its waiter was not reached."""
    with suppress(NotFound):
        later = found.begun()
        return later if later.job.key != found.job.key else None
    return None


def _planned(found: JobHandle, request: StopRequest) -> Destruction:
    """Return what is lost; SIGTERM alone, which is what a bare `jlr stop JOB` is for, is not."""
    state = "waiting" if found.job.waits_for_gpus else "running"
    runs = f"the {state} job: {one_line(found.job.command)}"
    losses: tuple[str, ...] = (runs,) if request.destroys and not found.job.over else ()
    losses += ("its output and exit code",) if request.remove else ()
    question = f"{'Delete' if request.remove else 'Kill'} the job {found.selector}?"
    return Destruction(question, losses)


def remove(found: JobHandle) -> None:
    """Delete a job that is over, and its output.

    Raises:
        JlrError: it could not be deleted.
    """
    done = run_script(found.host, found.backend.remove(found.job.key))
    if done.status != 0:
        raise JlrError(f"cannot delete `{found.selector}`: {done.complaint}")
    records.delete(found.host.name, found.job.name)


def _links(host: str | None, context: Context) -> list[Link]:
    """Return the link to a host, or to each where this laptop has started a job."""
    if host is not None:
        return [link_on(host, context)]
    ways = {(r.host, r.ssh_config): r for r in reversed(records.load_all())}
    return [link_of(record, context) for record in ways.values()]


def engine_of(host: Link) -> Engine:
    """Return the engine of a host's latest job in a container, else of its latest session."""
    return _of_jobs(host) or engine_if_any(host)


def _of_jobs(host: Link) -> Engine | None:
    runtimes = (runtime_named(r.runtime) for r in records.load_all() if r.host == host.name)
    return next((r.engine for r in runtimes if r.engine), None)


def _one(host: Link, engine: Engine | None, name: str) -> JobHandle:
    found = _one_of(_all(host, engine, name), name)
    if found is None:
        records.delete(host.name, name)
        raise NotFound(
            f"there is no job `{name}` on `{host.name}`",
            hint=f"`jlr runs {host.name}` lists its jobs",
        )
    return found


def _one_of(found: Sequence[JobHandle], name: str) -> JobHandle | None:
    """Return the job of that name; a full name takes precedence over a typed one."""
    return min(found, key=lambda each: each.job.name != name, default=None)


def _all(host: Link, engine: Engine | None, name: str | None = None) -> list[JobHandle]:
    """Return the user's jobs on a host, the latest first, in one round trip.

    Raises:
        EngineRefused: no process job was found, and the engine does not list its containers.
    """
    ours = ProcessJobs()
    theirs = None if engine is None else ContainerJobs(engine)
    steps = {"clock": "date +%s", "processes": ours.tell(name), "scheduled": SCHEDULED.tell(name)}
    told = host.run(steps | ({"containers": theirs.tell(name)} if theirs else {}))
    now = moment(told["clock"].stdout)
    own = kept_jobs.read(told["processes"].stdout)
    found = [JobHandle(host, ours, job.by_our_clock(now)) for job in own]
    queued = SCHEDULED.read(told["scheduled"].stdout)
    found += [JobHandle(host, SCHEDULED, job) for job in queued]
    if theirs is not None:
        answer = told["containers"]
        if answer.status == 0:
            others = containers.read(answer.stdout)
            begun = [JobHandle(host, theirs, job.by_our_clock(now)) for job in others]
            names = {each.job.name for each in begun}
            # A job that waited is there twice for a moment, until its container is all of it.
            waited = [each for each in found if each.job.waits_for_gpus and each.job.name in names]
            found = [*(each for each in found if each not in waited), *begun]
        elif answer.status != COMMAND_NOT_FOUND and not found:
            why = engine_error(theirs.engine, answer)
            raise EngineRefused(why.message, hint=why.hint)
    return sorted(found, key=lambda each: -(each.job.since or 0.0))
