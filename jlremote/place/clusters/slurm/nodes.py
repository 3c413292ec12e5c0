"""Partitions and their GPUs, as `sinfo` tells them; accounting is not needed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from jlremote.place.clusters.contract import ClusterGpus, GpuJob, GpuNodes
from jlremote.place.clusters.slurm import queue
from jlremote.place.host.answers import FIELD, GROUP, understood
from jlremote.times import by_our_clock
from jlremote.untrusted import count, moment

_WIDTH = 200
_COLUMNS = ("NodeHost", "PartitionName", "Gres", "GresUsed", "StateLong")
# One line a node and partition; GresUsed is in no single-letter format.
SINFO = ("sinfo", "--Node", f"--Format={','.join(f'{name}:{_WIDTH}' for name in _COLUMNS)}")
_JOB_COLUMNS = ("%i", "%u", "%P", "%b", "%D", "%N", "%e")
SQUEUE = ("squeue", "--states=running", f"--format={FIELD.join(_JOB_COLUMNS)}")
HEADING = "HOSTNAMES"
# `gpu:a100:2`, `gpu:2`, and as squeue writes a request, `gres:gpu:a100:2` or `gres/gpu=2`.
_GPU = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?::(?P<type>[^:,()=]+))??[:=](?P<count>\d+)(?=,|$)")
_MARKS = "*~#!%$@^-"  # what sinfo puts behind a state
_OPEN = ("idle", "mixed", "allocated", "completing", "planned")


@understood("Slurm")
def read_gpus(printed: str) -> ClusterGpus:
    """Return the GPUs of the partitions and their holders.

    Raises:
        SchedulerSilent: sinfo or squeue printed no heading.
    """
    listed, running, asked = printed.split(GROUP)
    user, _, now = asked.strip().partition("\n")
    rows = list(_rows(listed))
    if queue.HEADING not in running:  # else all that is in use would count as hidden
        raise queue.silence(running, "squeue")
    jobs = sorted(_jobs(running, now), key=lambda job: (job.user != user, job.user, job.job))
    # A node is in several partitions, and counts once.
    used = {node: sum(_gpus(busy).values()) for node, _, _, busy, _ in rows}
    hidden = max(0, sum(used.values()) - sum(job.gpus for job in jobs))
    return ClusterGpus(tuple(_by_partition(rows)), tuple(jobs), hidden)


def _rows(printed: str) -> Iterator[list[str]]:
    lines = printed.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith(HEADING)), None)
    if start is None:
        raise queue.silence(printed, "sinfo")
    for line in lines[start + 1 :]:
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
    """Return the count of each type in `gpu:a100:2(S:0-1),gpu:1`; without a type it is `gpu`."""
    found: dict[str, int] = defaultdict(int)
    for each in _GPU.finditer(re.sub(r"\([^()]*\)", "", gres)):
        found[each["type"] or "gpu"] += count(each["count"]) or 0
    return dict(found)
