"""Requests to a cluster's scheduler, and its answers, as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jlremote.errors import JlrError

# Stands for the index of each job of an array in the path of its log.
INDEX = "@index@"
KEY = '"$directory/.key"'  # shell text: a registry's key for a job, which deletes it
# Ends the name of the successor of a session's job until it runs; no session is called so.
FOLLOWS = "+next"

# Of Slurm, an argument a line. Other options may have `gpu` in a name: `--nodelist=gpu07`.
_ASKS_FOR_GPUS = re.compile(
    r"^(?:-G|--gpus(?:-per-\w+)?(?:=|$)|--(?:gres|tres-per-\w+)[=\n](?:.*[,:/])?gpu\b)",
    re.MULTILINE,
)


class SchedulerSilent(JlrError):
    """The scheduler does not answer, so nothing is known about its jobs."""


@dataclass(frozen=True)
class Resources:
    """What a job asks for, in the scheduler's own words; `None` is left to the site."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    nodes: str | None = None
    ntasks: str | None = None
    cpus: str | None = None  # of each task
    mem: str | None = None  # of each node
    gres: str | None = None
    time: str | None = None
    array: str | None = None  # the indices of its jobs; `None` asks for one job
    arguments: tuple[str, ...] = ()  # further arguments, passed on as they are

    @property
    def asks_for_gpus(self) -> bool:
        """Whether it requests GPUs: an option may be one word with its value, or two."""
        words = (f"--gres={self.gres or ''}", *self.arguments)
        return bool(_ASKS_FOR_GPUS.search("\n".join(words)))


@dataclass(frozen=True)
class Ranks:
    """How a job starts its command for each rank."""

    launcher: str  # `srun` or `torchrun`
    label: bool = False  # whether each line of output begins with its rank


@dataclass(frozen=True)
class QueuedJob:
    """A job as the scheduler describes it; moments are seconds since the epoch."""

    id: str
    name: str
    state: str  # the scheduler's word for it
    phase: str  # `waiting`, `running` or `ended`
    reason: str | None = None  # why it waits, in the scheduler's word
    start: float | None = None  # when it began, or is estimated to begin
    end: float | None = None  # when it ended, or its time is over
    nodes: str | None = None

    @property
    def last_state(self) -> str:
        """The state of a job that has ended, with the scheduler's reason, as jobs' folders keep."""
        return f"{self.state} ({self.reason})" if self.reason else self.state


@dataclass(frozen=True)
class Waiting:
    """Why a job waits."""

    kind: str  # `waits`, `quota`, `held`, `depends`, `never` or `unknown`
    sentence: str  # why
    action: str  # what to do, for `never` once it is cancelled


@dataclass(frozen=True)
class GpuNodes:
    """GPUs of one type on the nodes of a partition; a node may be in several partitions."""

    partition: str
    gpu: str  # the type, or `gpu` where the site names none
    nodes: int
    total: int
    free: int  # on nodes that take jobs


@dataclass(frozen=True)
class GpuJob:
    """A job that holds GPUs."""

    user: str
    job: str
    partition: str
    gpus: int
    nodes: str
    until: float | None  # when its time limit ends it, in seconds since the epoch


@dataclass(frozen=True)
class ClusterGpus:
    """The GPUs of a cluster, as its scheduler knows them."""

    nodes: tuple[GpuNodes, ...]  # by partition and type, also partitions without any
    jobs: tuple[GpuJob, ...]  # the user's own first
    hidden: int  # GPUs in use by jobs that the scheduler does not show


@dataclass(frozen=True)
class SchedulerFacts:
    """A scheduler on a host."""

    version: str
    complaint: str | None  # why it does not answer, `None` if it does
    choices: str | None  # what the user may ask for, in words
