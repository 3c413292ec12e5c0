"""A job that waits in a scheduler's queue, or for GPUs of a host: say why, until it begins."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator

from jlremote import times
from jlremote.jobs.scheduled import ScheduledJobs
from jlremote.jobs.stories.jobs import JobHandle
from jlremote.place.clusters.scheduler import SchedulerSilent
from jlremote.place.clusters.slurm_reasons import explain
from jlremote.place.host import kept_jobs
from jlremote.place.host.contract import GROUP, run_script
from jlremote.place.host.kept_jobs import ProcessJobs
from jlremote.untrusted import count

Note = Callable[[str], None]
_MOST = 1 << 20  # characters of one group


def wait_begun(found: JobHandle, backend: ScheduledJobs, note: Note) -> None:
    """Wait until a job begins or ends; note why it waits whenever that changes.

    Raises:
        Unreachable: the connection broke.
    """
    told = ""
    for one in _printed(found, backend.waiting(found.job.key)):
        words, reserved = _words(found, backend, one)
        if words and words != told:
            sooner = _sooner(found, backend) if reserved else ""
            note(f"`{found.selector}` {words}{sooner}")
            told = words


def wait_for_gpus(found: JobHandle, backend: ProcessJobs, note: Note) -> None:
    """Wait until a job has its GPUs or ends; note its place in the queue whenever that changes.

    Raises:
        Unreachable: the connection broke.
    """
    told = ""
    for one in _printed(found, backend.waiting(found.job.key)):
        words = kept_jobs.waits(one)
        place = words.partition(":")[0]
        if words and place != told:
            note(f"`{found.selector}` waits, {words}")
            told = place


def _printed(found: JobHandle, script: str) -> Iterator[str]:
    """Yield the groups that a script prints."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    printed = ""
    with found.host.process(script) as process:
        for stream, data in process:
            printed += decoder.decode(data) if stream == "stdout" else ""
            printed = printed[-_MOST:]
            while GROUP in printed:
                one, _, printed = printed.partition(GROUP)
                yield one


def _words(found: JobHandle, backend: ScheduledJobs, printed: str) -> tuple[str, bool]:
    """Say how a job waits, and whether maintenance may be why; nothing if it does not wait."""
    try:
        job = backend.read_waiting(printed, found.job.job or "")
    except SchedulerSilent as silent:
        return f"is queued; {silent.message}", False
    if job is None or job.phase != "waiting":
        return "", False
    why = explain(job.reason)
    action = why.action
    if why.kind == "never":
        action = f"`jlr stop {found.selector}` cancels it; {action}"
    begins = "" if job.start is None else f"; {times.expected(job.start)}"
    return f"waits: {why.sentence}; {action}{begins}", why.reserved


def _sooner(found: JobHandle, backend: ScheduledJobs) -> str:
    """Return the time limit with which a job would end before the next maintenance."""
    told = run_script(found.host, backend.scheduler.maintenance()).stdout.split()
    ahead = [seconds for word in told if (seconds := count(word) or 0) > 60]
    if not ahead:
        return ""
    begins = f"; maintenance begins in {times.in_words(min(ahead) // 60 * 60)}"
    return f"{begins}: a job with a `--time` below that need not wait for its end"
