"""A job that waits in a scheduler's queue: say why, until it begins."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable

from jlremote.host.records import GROUP
from jlremote.jobs.scheduled import ScheduledJobs
from jlremote.schedulers.contract import QueuedJob, SchedulerSilent
from jlremote.workflow.jobs.jobs import JobHandle

Note = Callable[[str], None]


def wait_begun(found: JobHandle, backend: ScheduledJobs, note: Note) -> None:
    """Wait until a job begins or ends; note why it waits whenever that changes.

    Raises:
        Unreachable: the connection broke.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    told, printed = "", ""
    with found.host.process(backend.waiting(found.job.key)) as process:
        for stream, data in process:
            printed += decoder.decode(data) if stream == "stdout" else ""
            while GROUP in printed:
                one, _, printed = printed.partition(GROUP)
                words = _words(found, backend, one)
                if words and words != told:
                    note(f"`{found.selector}` {words}")
                    told = words


def _words(found: JobHandle, backend: ScheduledJobs, printed: str) -> str | None:
    """Say how a job waits, `None` if it does not."""
    try:
        job = backend.read_waiting(printed, found.job.job or "")
    except SchedulerSilent as silent:
        return f"is queued; {silent.message}"
    if job is None or job.phase != "waiting":
        return None
    why = backend.scheduler.waiting(job)
    action = why.action
    if why.kind == "never":
        action = f"`jlr stop {found.selector}` cancels it; {action}"
    return f"waits: {why.sentence}; {action}{_estimated(job)}"


def _estimated(job: QueuedJob) -> str:
    """Return the scheduler's estimate of the start; it has none for most jobs."""
    if job.start is None:
        return ""
    moment = time.strftime("%a %H:%M", time.localtime(job.start))
    return f"; estimated start: {moment}"
