"""The GPUs of a cluster, as tables or as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from jlremote import times
from jlremote.cli.screen.tables import show_table
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.schedulers.contract import ClusterGpus, GpuJob

HEADINGS = ("PARTITION", "GPU", "NODES", "FREE", "TOTAL")
JOB_HEADINGS = ("USER", "JOB", "GPUS", "PARTITION", "NODES", "TIME LEFT")


def show(found: ClusterGpus, host: str, note: Callable[[str], None], *, as_json: bool) -> None:
    """Print the partitions, and below them the jobs that hold GPUs."""
    if as_json:
        answer_json({"host": host} | asdict(found) | {"jobs": [_facts(job) for job in found.jobs]})
        return
    show_table(
        HEADINGS,
        [(n.partition, n.gpu or "-", str(n.nodes), str(n.free), str(n.total)) for n in found.nodes],
    )
    if found.jobs:
        answer("")
        show_table(JOB_HEADINGS, [_row(job) for job in found.jobs])
    if found.hidden:
        note(f"{found.hidden} more GPUs are in use; Slurm does not show by whom")


def _facts(job: GpuJob) -> dict[str, Any]:
    return asdict(job) | {"until": None if job.until is None else times.utc(job.until)}


def _row(job: GpuJob) -> tuple[str, ...]:
    left = "?" if job.until is None else times.left(job.until)
    return (job.user, job.job, str(job.gpus), job.partition, job.nodes, left)
