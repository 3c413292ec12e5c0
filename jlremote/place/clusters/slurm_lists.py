"""Readers of Slurm's lists: the user's jobs, and the GPUs of partitions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from jlremote.place.clusters.scheduler import (
    ClusterGpus,
    GpuJob,
    GpuNodes,
    QueuedJob,
    SchedulerSilent,
)
from jlremote.place.host.contract import FIELD, GROUP, understood
from jlremote.text import one_line
from jlremote.times import by_our_clock
from jlremote.untrusted import count, moment

# squeue's letters of the columns, in the order of the fields below.
QUEUE_COLUMNS = ("%i", "%j", "%T", "%r", "%S", "%e", "%N")
QUEUE_HEADING = "JOBID"
PENDING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD")
RUNNING = (
    *("RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"),
    "SPECIAL_EXIT",
)
_DENIED = re.compile(r"access/permission denied|permission denied", re.IGNORECASE)
_NOTHING = ("None", "N/A", "(null)", "", "NonZeroExitCode")


@understood("Slurm")
def read_queue(printed: str) -> Mapping[str, QueuedJob]:
    """Return the jobs by id (`SchedulerSilent`: there is no heading, which proves an answer)."""
    rows = (line.split(FIELD) for line in _listed(printed, QUEUE_HEADING + FIELD, "squeue"))
    return {fields[0]: _job(fields) for fields in rows if len(fields) >= len(QUEUE_COLUMNS)}


def _listed(printed: str, heading: str, program: str) -> list[str]:
    lines = printed.splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith(heading):
            return lines[number:]
    raise silence(printed, program)


def silence(printed: str, program: str) -> SchedulerSilent:
    """Return the error of a list without a heading: no answer, or one that was refused."""
    words = one_line(printed)[:300] or f"{program} printed nothing"
    if _DENIED.search(words):
        why = f"Slurm does not show you this: {words}"
        return SchedulerSilent(why, hint="ask the site, which may hide it (`PrivateData`)")
    return SchedulerSilent(
        f"Slurm does not answer: {words}", hint="its jobs go on meanwhile; try again"
    )


def _job(fields: list[str]) -> QueuedJob:
    job, name, words, reason, start, end, nodes = fields[: len(QUEUE_COLUMNS)]
    state = base_state(words)
    return QueuedJob(
        id=job,
        name=name,
        state=state,
        phase="waiting" if state in PENDING else "running" if state in RUNNING else "ended",
        reason=None if reason in _NOTHING else reason,
        start=moment(start),
        end=moment(end),
        nodes=None if nodes in _NOTHING else nodes,
    )


def base_state(words: str) -> str:
    """Return the plain state of `CANCELLED by 1234` or `CANCELLED+`."""
    return words.strip().partition(" ")[0].rstrip("+")


_WIDTH = 200
_COLUMNS = ("NodeHost", "PartitionName", "Gres", "GresUsed", "StateLong")
# One line a node and partition; GresUsed is in no single-letter format.
SINFO = ("sinfo", "--Node", f"--Format={','.join(f'{name}:{_WIDTH}' for name in _COLUMNS)}")
_JOB_COLUMNS = ("%i", "%u", "%P", "%b", "%D", "%N", "%e")
SQUEUE = ("squeue", "--states=running", f"--format={FIELD.join(_JOB_COLUMNS)}")
NODES_HEADING = "HOSTNAMES"
# `gpu:a100:2`, `gpu:2`, and as squeue writes a request, `gres:gpu:a100:2` or `gres/gpu=2`.
_GPU = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?::(?P<type>[^:,()=]+))??[:=](?P<count>\d+)(?=,|$)")
_MARKS = "*~#!%$@^-"  # what sinfo puts behind a state
_OPEN = ("idle", "mixed", "allocated", "completing", "planned")


@understood("Slurm")
def read_gpus(printed: str) -> ClusterGpus:
    """Return the GPUs of partitions and who holds them (`SchedulerSilent`: there is no heading)."""
    listed, running, asked = printed.split(GROUP)
    user, _, now = asked.strip().partition("\n")
    rows = list(_rows(listed))
    if QUEUE_HEADING not in running:  # else all that is in use would count as hidden
        raise silence(running, "squeue")
    jobs = sorted(_jobs(running, now), key=lambda job: (job.user != user, job.user, job.job))
    # A node is in several partitions, and counts once.
    used = {node: sum(_gpus(busy).values()) for node, _, _, busy, _ in rows}
    hidden = max(0, sum(used.values()) - sum(job.gpus for job in jobs))
    return ClusterGpus(tuple(_by_partition(rows)), tuple(jobs), hidden)


def _rows(printed: str) -> Iterator[list[str]]:
    for line in _listed(printed, NODES_HEADING, "sinfo"):
        columns = [line[at : at + _WIDTH].strip() for at in range(0, len(line), _WIDTH)]
        if len(columns) == len(_COLUMNS):
            yield columns


def _by_partition(rows: Iterable[list[str]]) -> Iterator[GpuNodes]:
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for _, partition, gres, used, state in rows:
        has, busy = _gpus(gres), _gpus(used)
        for kind in has or {"": 0}:
            total = has.get(kind, 0)
            free = total - busy.get(kind, 0) if state.rstrip(_MARKS) in _OPEN else 0
            old = counts[partition, kind]
            counts[partition, kind] = [old[0] + 1, old[1] + total, old[2] + free]
    return (GpuNodes(*key, *row) for key, row in sorted(counts.items()))


def _jobs(printed: str, now: str) -> Iterator[GpuJob]:
    for line in printed.splitlines():
        fields = line.split(FIELD)
        if len(fields) != len(_JOB_COLUMNS):
            continue
        job, user, partition, gres, tasks, nodes, end = fields
        gpus = sum(_gpus(gres).values()) * (count(tasks) or 0)
        if gpus:
            until = by_our_clock(moment(end), moment(now))
            yield GpuJob(user, job, partition, gpus, nodes, until)


def _gpus(gres: str) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for each in _GPU.finditer(re.sub(r"\([^()]*\)", "", gres)):
        found[each["type"] or "gpu"] += count(each["count"]) or 0
    return dict(found)
