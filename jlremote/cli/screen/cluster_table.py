"""The GPUs of a cluster, as tables or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jlremote import times
from jlremote.cli.screen.tables import show_table, table
from jlremote.cli.screen.terminal import answer
from jlremote.schedulers.contract import ClusterGpus, GpuJob
from jlremote.text import one_line

if TYPE_CHECKING:
    from rich.console import Group

HEADINGS = ("PARTITION", "GPU", "NODES", "FREE", "TOTAL")
JOB_HEADINGS = ("USER", "JOB", "GPUS", "PARTITION", "NODES", "TIME LEFT")


def to_json(found: ClusterGpus, host: str) -> dict[str, Any]:
    """Return the object of `--json`."""
    return {"host": host} | asdict(found) | {"jobs": [_facts(job) for job in found.jobs]}


def show(found: ClusterGpus, note: Callable[[str], None]) -> None:
    """Print the partitions, and below them the jobs that hold GPUs."""
    show_table(HEADINGS, _partitions(found))
    if found.jobs:
        answer("")
        show_table(JOB_HEADINGS, map(_row, found.jobs))
    if found.hidden:
        note(_hidden(found))


def drawn(host: str, found: ClusterGpus) -> Group:
    """Return the drawing of one moment."""
    from rich.console import Group
    from rich.text import Text

    title = Text(f"{one_line(host)}  (asked once a minute; Ctrl-C ends)", style="dim")
    hidden = [Text(_hidden(found))] if found.hidden else []
    jobs = table(JOB_HEADINGS, map(_row, found.jobs)) if found.jobs else Text("no jobs with GPUs")
    return Group(title, table(HEADINGS, _partitions(found)), Text(""), jobs, *hidden)


def _hidden(found: ClusterGpus) -> str:
    return f"{found.hidden} more GPUs are in use; Slurm hides their users"


def _partitions(found: ClusterGpus) -> Iterator[tuple[str, ...]]:
    for nodes in found.nodes:
        counts = (str(nodes.nodes), str(nodes.free), str(nodes.total))
        yield (nodes.partition, nodes.gpu or "-", *counts)


def _facts(job: GpuJob) -> dict[str, Any]:
    return asdict(job) | {"until": None if job.until is None else times.utc(job.until)}


def _row(job: GpuJob) -> tuple[str, ...]:
    left = "?" if job.until is None else times.left(job.until)
    return (job.user, job.job, str(job.gpus), job.partition, job.nodes, left)
