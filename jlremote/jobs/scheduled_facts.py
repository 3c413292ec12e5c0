"""The jobs of a scheduler, as their folders, the queue and the accounting tell them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jlremote.place.clusters import slurm_reasons
from jlremote.place.clusters.last_states import JobEnding, read_ending
from jlremote.place.clusters.scheduler import FOLLOWS, QueuedJob, SchedulerSilent
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.clusters.slurm_lists import read_queue
from jlremote.place.host.contract import GROUP, records, understood
from jlremote.place.host.job import Job
from jlremote.text import is_name
from jlremote.untrusted import moment, whole_number


def read(printed: str) -> list[Job]:
    """Return the jobs that the script of `tell` printed."""
    with understood("the shell"):
        now, _, rest = printed.partition(GROUP)
        folders, _, rest = rest.partition(GROUP)
        asked, _, accounted = rest.partition(GROUP)
        queue: Mapping[str, QueuedJob] = {}
        silence = None
        try:
            queue = read_queue(asked)
        except SchedulerSilent as silent:
            silence = silent.message
        live = SLURM.live_states
        ends = {
            id_: words for id_, words in records(accounted) if words and not words.startswith(live)
        }
        jobs = [
            _job(fields, queue, ends, silence)
            for fields in records(folders)
            if is_name(fields[0].removesuffix(FOLLOWS))
        ]
    clock = moment(now)
    return [job.by_our_clock(clock) for job in jobs]


def _job(
    fields: list[str],
    queue: Mapping[str, QueuedJob],
    ends: Mapping[str, str],
    silence: str | None,
) -> Job:
    name, command, asked, remove, mark, id_, submitted, began, exit_, ending, log, old = fields
    id_ = id_.strip()
    live = queue.get(id_)
    code, _, ended = exit_.strip().partition(" ")
    known = read_ending(ending or ends.get(id_, ""))
    start, _, node = began.strip().partition(" ")
    if live and live.phase == "ended" and not known.state:
        known = JobEnding(live.last_state)
    job = Job(
        name=name,
        state="running" if start else "waiting",
        command=command,
        since=moment(start) or moment(submitted),
        gpus=asked or None,
        remove=bool(remove),
        job=id_ or None,
        node=(live.nodes if live else None) or node or None,
        mark=mark,
    )
    if code or known.state:
        how = slurm_reasons.ending(known.state, log)
        if not how and not code:
            how = known.unwritten(log, began=bool(start))
        status = whole_number(code) if code else None
        if how and status == 0:
            status = slurm_reasons.unfinished_code(how)
        last_seen = moment(ended) or moment(known.moment)
        return replace(job, state="ended", exit_code=status, ended=last_seen, detail=how)
    if live is None:
        return _unlisted(job, silence, is_old=bool(old.strip()))
    if live.phase == "waiting":
        reason = slurm_reasons.explain(live.reason).sentence
        return replace(job, state="waiting", node=None, reason=reason, starts=live.start)
    return replace(job, state="running", until=live.end)


def _unlisted(job: Job, silence: str | None, *, is_old: bool) -> Job:
    """Return a job that is not in the queue, and left no end.

    The answer that lacks a new one may be older: some sites keep the queue for a minute.
    """
    if silence:
        return replace(job, state="unknown", detail=silence)
    if not is_old:
        unseen = (
            "its submission is not confirmed yet" if job.job is None else "it is not listed yet"
        )
        return replace(job, state="unknown", detail=unseen)
    if job.job is None:
        return replace(job, state="lost", detail="its submission was cut off: there is no such job")
    return replace(
        job, state="lost", detail="the scheduler no longer knows it, and it left no exit code"
    )
