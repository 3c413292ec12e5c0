"""The contract of a scheduler; all is text for `sh` or plain values, so it needs no host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from jlremote.errors import JlrError
from jlremote.host.contract import Completed

# Stands for the index of each job of an array in the path of its log.
INDEX = "@index@"
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
    constraint: str | None = None
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
    reserved: bool = False  # whether maintenance may be what it waits for


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


class Scheduler(Protocol):
    """A scheduler. Methods return shell text or read its output; none has effects."""

    @property
    def name(self) -> str:
        """The name in messages."""

    def submit(self, name: str, log: str, resources: Resources) -> str:
        """Return a shell command that submits the script on its stdin and prints the job's id.

        `log` is shell text with the path of a file for the scheduler's own messages, which for an
        array has `INDEX` in it.
        """

    def array_limit(self) -> str:
        """Return shell text that prints the limit for `indices`, if the site tells it."""

    def indices(self, array: str, limit: str) -> tuple[int, ...]:
        """Return the indices of an array's jobs. The id of such a job is `ID_INDEX`.

        Raises:
            Usage: they are not written as the scheduler takes them, or are above the limit.
        """

    def task(self, command: tuple[str, ...], ranks: Ranks) -> tuple[str, ...]:
        """Return what each task of a job runs so that `command` runs in each rank."""

    def launched(self, argv: tuple[str, ...], ranks: Ranks) -> str:
        """Return shell text that runs `argv` as each task of a job, in place of its shell."""

    def search(self, name: str) -> str:
        """Return shell text that prints the ids of the user's jobs and arrays of that name.

        It fails if the scheduler does not answer.
        """

    def queue(self, seconds: int | None = None) -> str:
        """Return shell text that prints the user's jobs, also those that have just ended.

        It ends after so many seconds, `None` for as many as other questions have.
        """

    def read_queue(self, printed: str) -> Mapping[str, QueuedJob]:
        """Return the jobs by their ids.

        Raises:
            SchedulerSilent: it did not answer.
        """

    def answer(self) -> str:
        """Return a shell command that reads what `queue` printed, and prints only a whole answer.

        That begins with a heading; without one nothing is printed, as nothing is known.
        """

    def requeues(self, resources: Resources) -> bool:
        """Return whether the job may be put back into the queue, to begin anew later."""

    def put_back(self) -> str:
        """Return shell text that reads the scheduler's messages of a job that ends.

        It succeeds if the job is put back, or may be.
        """

    def drained(self) -> str:
        """Return shell text that reads what `queue` printed, and prints which nodes are drained.

        For each running job a line for each of its nodes that takes no new jobs, with the site's
        words: its id, the node and the words, as fields.
        """

    def after(self, job: str) -> tuple[str, ...]:
        """Return arguments of a submission that let a job wait until another one is over."""

    def trial(self, script: str) -> str | None:
        """Return shell text that fails where the scheduler does not answer within a second.

        It is `None` if a script does not ask it.
        """

    def accounted(self, job: str) -> str:
        """Return shell text that prints a job's last state, its end and its exit code.

        They are divided by `|`, and as in the last states of jobs; nothing if none is known.
        """

    @property
    def waiting_states(self) -> tuple[str, ...]:
        """The states of jobs that have not begun, or were put back into the queue."""

    @property
    def live_states(self) -> tuple[str, ...]:
        """The states of jobs that are not over."""

    def waiting(self, job: QueuedJob) -> Waiting:
        """Explain why a job waits."""

    def maintenance(self) -> str:
        """Return shell text that prints in how many seconds each maintenance begins, one a line."""

    def ending(self, state: str, log: str) -> str | None:
        """Say in words how a job ended, `None` for an end of its own.

        `state` is the recorded state, empty if there is none; `log` has the scheduler's messages.
        """

    def unfinished_code(self, how: str) -> int:
        """Return the exit code of a job that `how` of `ending` is told of, and that exited with 0.

        Its command did not come to its end; 128 + N stands for signal N.
        """

    def signal(self, job: str, signal: str) -> str:
        """Return shell text that signals all processes of a job; `job` is shell text."""

    def step(self, job: str, *, terminal: bool = False, name: str = "") -> str:
        """Return shell text that runs `"$@"` on the first node of a running job.

        Its stdin and stdout are the command's, in a terminal of its own if asked for. `job` is
        shell text; by `name` the step is found again.
        """

    def end_steps(self, job: str, name: str) -> str:
        """Return shell text that kills all processes of a job's steps of a name, and waits for it.

        It exits with `process_mark.STAYS` if it cannot. `job` is shell text.
        """

    def holds(self, job: str) -> str:
        """Return shell text that checks whether `$process`, a folder of `/proc`, is a job's."""

    def plain_variables(self) -> str:
        """Return shell text that drops a job's variables which its programs would take for a task.

        They keep the job's id and its GPUs.
        """

    def cancel(self, job: str) -> str:
        """Return shell text that cancels a job; `job` is shell text."""

    def estimate(self, resources: Resources) -> str:
        """Return a shell command that tries a submission of its stdin, without submitting it."""

    def read_estimate(self, answer: Completed) -> str:
        """Return the scheduler's words about the trial."""

    def refusal(self, answer: Completed) -> JlrError:
        """Return the error of a submission that failed; `SchedulerSilent` if it may have worked."""

    def runs_images(self) -> str:
        """Return shell text that succeeds where the scheduler has an option of its own for images.

        It prints what a person would type in place of the command.
        """

    def presence(self) -> str:
        """Return shell text that shows whether the host has the scheduler, and that it answers."""

    def read_presence(self, printed: str) -> SchedulerFacts | None:
        """Return the scheduler, `None` where there is none."""

    def choices(self) -> str:
        """Return shell text that prints what the user may ask for."""

    def read_choices(self, printed: str) -> str | None:
        """Return that in words, `None` if there is nothing."""

    def gpus(self) -> str:
        """Return shell text that describes the GPUs of the partitions, and who holds them.

        Its status is 127 where there is no such scheduler.
        """

    def read_gpus(self, printed: str) -> ClusterGpus:
        """Return the GPUs of the cluster.

        Raises:
            SchedulerSilent: it did not answer.
        """
