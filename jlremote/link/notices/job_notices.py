"""Desktop notices of jobs: their begin, their end and their time limit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from jlremote.errors import JlrError
from jlremote.jupyter.endpoint import WARNED_SECONDS
from jlremote.link.connection.backoff import keep_going
from jlremote.place.host.contract import Host, run_script
from jlremote.place.host.job import Job
from jlremote.times import left

log = logging.getLogger(__name__)

PAUSE_SECONDS = 10.0
QUEUE_PAUSE_SECONDS = 60.0  # of a cluster's scheduler, which many users ask
CONNECTION_SECONDS = 60.0

Show = Callable[[str, str], bool]


@dataclass(frozen=True)
class WatchedJob:
    """A job to watch."""

    name: str
    key: str  # see `Job.key`; the name of one that waits for GPUs, as it has no container yet
    kind: str  # `processes`, `scheduled`, or the runtime whose engine has it


class JobNotices:
    """The jobs of one host that are watched.

    `connected` returns the host once there is a connection, and raises `JlrError` if there is none
    after some seconds; `gone` is called when no job is left.
    """

    def __init__(self, connected: Callable[[float], Host], show: Show) -> None:
        self.gone: Callable[[], None] = lambda: None
        self._connected = connected
        self._show = show
        self._lock = threading.Lock()
        self._jobs: dict[WatchedJob, Job | None] = {}  # as they were last
        self._warned: set[tuple[str, float]] = set()  # keys, and the ends that were told
        self._untold: set[str] = set()  # names of jobs whose end no desktop has shown
        self._ended = threading.Event()

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: WatchedJob) -> None:
        """Watch a job; repeating it is harmless."""
        with self._lock:
            idle = not self._jobs
            self._jobs.setdefault(job, None)
        if idle:
            threading.Thread(target=self._keep_looking, daemon=True).start()

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

    def _keep_looking(self) -> None:
        keep_going("jobs", self._look, wanted=lambda: not self._ended.is_set())
        self.gone()

    def _look(self) -> None:
        while self._jobs and not self._ended.is_set():
            try:
                host = self._connected(CONNECTION_SECONDS)
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
                shown = self._show(f"{host.name}/{watched.name}", text)
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
