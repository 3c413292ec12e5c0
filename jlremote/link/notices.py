"""Desktop notices of the link: jobs, long cells, dead kernels.

The link tells, as it runs where the person is; what came without a connection is told afterwards.
It asks by a short script every few seconds: one that waits would hold one of sshd's ten sessions.
Jupyter itself does not tell since when a kernel is busy, nor that it died.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from jlremote.errors import JlrError
from jlremote.jupyter.endpoint import WARNED_SECONDS
from jlremote.jupyter.scripts import session_directory
from jlremote.link.connection.backoff import begin_loop
from jlremote.link.wire.protocol import bytes_of
from jlremote.output import recorded_files
from jlremote.output.recorded_files import Reader, Record
from jlremote.place.host.contract import Host, run_script
from jlremote.place.host.job import Job
from jlremote.place.runtimes.place import Place
from jlremote.ssh.channels.session_channel import Stream
from jlremote.ssh.connection import Connection
from jlremote.times import in_words, left

log = logging.getLogger(__name__)

PAUSE_SECONDS = 10.0
QUEUE_PAUSE_SECONDS = 60.0  # of a cluster's scheduler, which many users ask
CONNECTION_SECONDS = 60.0
LONG_SECONDS = 60  # of a cell whose end is told


@dataclass(frozen=True)
class WatchedJob:
    """A job to watch."""

    name: str
    key: str  # see `Job.key`; the name of one that waits for GPUs, as it has no container yet
    kind: str  # `processes`, `scheduled`, or the runtime whose engine has it


@dataclass(eq=False)
class JobNotices:
    """The jobs of one host that are watched.

    `connected` returns the host once there is a connection, and raises `JlrError` if there is none
    after some seconds; `gone` is called when no job is left.
    """

    connected: Callable[[float], Host]
    show: Callable[[str, str], bool]
    gone: Callable[[], None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _jobs: dict[WatchedJob, Job | None] = field(default_factory=dict)  # as they were last
    # Keys, and the ends that were told.
    _warned: set[tuple[str, float]] = field(default_factory=set)
    _untold: set[str] = field(default_factory=set)  # names of jobs whose end no desktop has shown
    _ended: threading.Event = field(default_factory=threading.Event)

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: WatchedJob) -> None:
        """Watch a job; repeating it is harmless."""
        with self._lock:
            idle = not self._jobs
            self._jobs.setdefault(job, None)
        if idle:
            begin_loop("jobs", self._look, wanted=self._goes_on, ended=lambda: self.gone())

    def remove(self, name: str) -> bool:
        """Stop watching a job; return whether its end had not been told."""
        with self._lock:
            watched = [job for job in self._jobs if job.name == name]
            for job in watched:
                del self._jobs[job]
            untold = name in self._untold
            self._untold.discard(name)
        return untold or bool(watched)

    def stop(self) -> None:
        self._ended.set()

    def _goes_on(self) -> bool:
        return bool(self._jobs) and not self._ended.is_set()

    def _look(self) -> None:
        while self._goes_on():
            try:
                host = self.connected(CONNECTION_SECONDS)
                for job in tuple(self._jobs):
                    self._ask(host, job)
            except JlrError as failure:
                log.info("the watched jobs are not known: %s", failure)
            queued = all(job.kind == "scheduled" for job in self._jobs)
            self._ended.wait(QUEUE_PAUSE_SECONDS if queued else PAUSE_SECONDS)

    def _ask(self, host: Host, watched: WatchedJob) -> None:
        now = _find(host, watched)
        with self._lock:
            if watched not in self._jobs:
                return
            before, self._jobs[watched] = self._jobs[watched], now
            if now is None or now.over:
                del self._jobs[watched]
            if now is not None and (text := self._news(before, now)):
                shown = self.show(f"{host.name}/{watched.name}", text)
                if now.over and not shown:
                    self._untold.add(watched.name)

    def _news(self, before: Job | None, job: Job) -> str | None:
        if job.over:
            return job.ending
        if before is not None and before.state == "waiting" and job.state == "running":
            return f"the job has begun{f' on {job.node}' if job.node else ''}: {job.command}"
        if job.until is None or job.until - time.time() > WARNED_SECONDS:
            return None
        if (job.key, job.until) in self._warned:
            return None
        self._warned.add((job.key, job.until))
        return f"its time limit ends it in {left(job.until)}: {job.command}"


def _find(host: Host, watched: WatchedJob) -> Job | None:
    # Loaded here: few links watch jobs, and each first command waits until its link has loaded.
    from jlremote.jobs import engine_jobs
    from jlremote.jobs.engine_jobs import ContainerJobs
    from jlremote.jobs.scheduled_jobs import ScheduledJobs
    from jlremote.place.host import kept_jobs
    from jlremote.place.host.kept_jobs import ProcessJobs
    from jlremote.place.runtimes.table import runtime_named

    backend: ProcessJobs | ScheduledJobs | ContainerJobs = ProcessJobs()
    read = kept_jobs.read
    if watched.kind == "scheduled":
        backend = queue = ScheduledJobs()
        read = queue.read
    elif watched.kind != "processes":
        engine = runtime_named(watched.kind).required_engine
        backend, read = ContainerJobs(engine), engine_jobs.read
    done = run_script(host, backend.tell(watched.name))
    if done.status != 0:
        raise JlrError(f"`{watched.name}` cannot be checked: {done.complaint}")
    listed = read(done.stdout)
    job = next((job for job in listed if watched.key in (job.key, job.name)), None)
    if job is None and watched.kind not in ("processes", "scheduled"):
        # It may wait for GPUs before its container is created.
        return _find(host, replace(watched, kind="processes"))
    return job


@dataclass(frozen=True, eq=False)
class CellNotices:
    """The sessions of one host with notices of long cells and dead kernels.

    `connected` returns a connection, or raises `JlrError` if there is none after some seconds;
    `place_of` returns where a session runs, `None` once it is no longer forwarded.
    """

    connected: Callable[[float], Connection]
    place_of: Callable[[str], Place | None]
    show: Callable[[str, str], object]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sessions: set[str] = field(default_factory=set)
    _read_now: set[str] = field(default_factory=set)  # with a thread, which may outlast the wish
    _ended: threading.Event = field(default_factory=threading.Event)

    def set(self, session: str, *, wanted: bool) -> None:
        """Turn the notices of a session on or off; repeating it is harmless."""
        with self._lock:
            (self._sessions.add if wanted else self._sessions.discard)(session)
            new = wanted and session not in self._read_now
            if new:
                self._read_now.add(session)
        if new:
            news = CellNews()
            begin_loop(
                f"cells of {session}",
                lambda: self._read(session, news),
                wanted=lambda: self._wanted(session),
                ended=lambda: self._read_now.discard(session),
            )

    def stop(self) -> None:
        self._ended.set()

    def _wanted(self, session: str) -> bool:
        return session in self._sessions and not self._ended.is_set()

    def _read(self, session: str, news: CellNews) -> None:
        """Read while the session is forwarded, from where the last connection ended."""

        def take(stream: Stream, data: bytes) -> None:
            if stream == "stderr":
                log.info("the cells of %s: %r", session, data[:1000])
            for record in reader.take(data) if stream == "stdout" else ():
                if (text := news.take(record)) and self._wanted(session):
                    self.show(session, text)

        while self._wanted(session):
            reader = Reader()
            place = self.place_of(session)
            if place is None:
                self.set(session, wanted=False)
                return
            try:
                connection = self.connected(CONNECTION_SECONDS)
                directory = session_directory(place.runtime, place.name)
                script = place.runtime.beside(place.name, recorded_files.news(directory))
                connection.run_preemptible(bytes_of(f"{script}\n"), take)
            except JlrError as failure:
                log.info("the cells of %s are not read: %s", session, failure)
            self._ended.wait(PAUSE_SECONDS)


class CellNews:
    """The records of a session as news; those of the first look are known already."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str | None], tuple[float, object]] = {}
        self._latest = 0.0
        self._looked = False

    def take(self, record: Record | None) -> str | None:
        """Return the notice of a record if it is news; `None` marks the end of a look."""
        if record is None:
            self._looked = True
            return None
        if record.time <= self._latest and self._looked:
            return None  # it was read before a loss of the connection
        self._latest = max(self._latest, record.time)
        text = self._text(record)
        return text if self._looked else None

    def _text(self, record: Record) -> str | None:
        notebook = record.notebook or "a kernel without a notebook"
        run = record.kernel, record.request
        if record.kind == "code":
            self._begun[run] = record.time, record.content.get("execution_count")
        elif record.kind == "end" and run in self._begun:
            since, number = self._begun.pop(run)
            if record.time - since >= LONG_SECONDS:
                cell = f"cell [{number}]" if isinstance(number, int) else "a cell"
                failed = " with an error" if record.text("status") == "error" else ""
                took = in_words(int(record.time - since))
                return f"{cell} of {notebook} has ended{failed} after {took}"
        elif record.kind == "kernel" and record.text("state") == "died":
            return f"the kernel of {notebook} has died"
        return None
