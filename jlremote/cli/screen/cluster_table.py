"""The GPUs of a cluster, as tables or as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

from jlremote.cli.screen.tables import show_table
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.schedulers.contract import ClusterGpus, GpuJob
from jlremote.times import in_words

HEADINGS = ("PARTITION", "GPU", "NODES", "FREE", "TOTAL")
JOB_HEADINGS = ("USER", "JOB", "GPUS", "PARTITION", "NODES", "TIME LEFT")


def show(found: ClusterGpus, host: str, note: Callable[[str], None], *, as_json: bool) -> None:
    """Print the partitions, and below them the jobs that hold GPUs."""
    if as_json:
        answer_json({"host": host} | asdict(found))
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


def _row(job: GpuJob) -> tuple[str, ...]:
    seconds = None if job.until is None else max(0, round(job.until - time.time()))
    left = "?" if seconds is None else in_words(seconds - seconds % 60 if seconds > 60 else seconds)
    return (job.user, job.job, str(job.gpus), job.partition, job.nodes, left)
