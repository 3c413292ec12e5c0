"""Readers of Slurm's lists (the user's jobs, the GPUs of partitions), and what their words mean.

The reasons are those of `job_state_reason_string` in Slurm's source; unknown ones are given as
Slurm has them. A reason never makes jlr cancel a job: it may pass by itself.

Of an end Slurm's log is the better source: it stays when slurmctld has forgotten the job
(MinJobAge, 300 s) and the site has no accounting. Its words are those of `slurmstepd`
(`*** JOB 7 ON node1 CANCELLED AT … DUE TO TIME LIMIT ***`).
"""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from jlremote.place.clusters.scheduler import (
    ClusterGpus,
    GpuJob,
    GpuNodes,
    QueuedJob,
    SchedulerSilent,
    Waiting,
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
    found = {}
    for line in _listed(printed, QUEUE_HEADING + FIELD, "squeue"):
        fields = line.split(FIELD)[: len(QUEUE_COLUMNS)]
        if len(fields) < len(QUEUE_COLUMNS):
            continue
        job, name, words, reason, start, end, nodes = fields
        state = base_state(words)
        found[job] = QueuedJob(
            id=job,
            name=name,
            state=state,
            phase="waiting" if state in PENDING else "running" if state in RUNNING else "ended",
            reason=None if reason in _NOTHING else reason,
            start=moment(start),
            end=moment(end),
            nodes=None if nodes in _NOTHING else nodes,
        )
    return found


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
    lines = _listed(listed, NODES_HEADING, "sinfo")
    cut = ([line[at : at + _WIDTH].strip() for at in range(0, len(line), _WIDTH)] for line in lines)
    rows = [columns for columns in cut if len(columns) == len(_COLUMNS)]
    if QUEUE_HEADING not in running:  # else all that is in use would count as hidden
        raise silence(running, "squeue")
    jobs = sorted(_jobs(running, now), key=lambda job: (job.user != user, job.user, job.job))
    # A node is in several partitions, and counts once.
    used = {node: sum(_gpus(busy).values()) for node, _, _, busy, _ in rows}
    hidden = max(0, sum(used.values()) - sum(job.gpus for job in jobs))
    return ClusterGpus(tuple(_by_partition(rows)), tuple(jobs), hidden)


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


_WAIT = "nothing to do: it starts by itself"
_NO_NODE = "nodes that it needs are drained, down, or reserved for maintenance"
_LOOK = "`sinfo -R` and `scontrol show reservation` there tell which"
_RELEASE = "`scontrol release JOB` lets it go"
_TIME = "its time is over the limit of the partition"
_NODES = "it asks for more nodes than the partition gives to a job"
_UNMET = "the job that it depends on did not end as it must"
_ACCOUNT = "choose another `--account`"
_QOS = "choose another `--qos`"
_TABLE: Mapping[str, tuple[str, str, str]] = {
    "Priority": ("waits", "jobs with a higher priority are before it", _WAIT),
    "Resources": ("waits", "the resources that it asks for are in use", _WAIT),
    "None": ("waits", "Slurm has not looked at it yet", _WAIT),
    "BeginTime": ("waits", "its start time has not come", _WAIT),
    "Cleaning": ("waits", "its last run is still being cleaned up", _WAIT),
    "Licenses": ("waits", "all licences that it asks for are in use", _WAIT),
    "NodeDown": ("waits", "a node that it needs is down", "ask the site if it lasts"),
    # 26.05 has the same word, without names, for drained nodes, too.
    "ReqNodeNotAvail": ("waits", _NO_NODE, _LOOK),
    # A sentence of its own, whose first words these are.
    "Nodes required for job are DOWN": ("waits", _NO_NODE, _LOOK),
    "JobArrayTaskLimit": ("waits", "its array runs as many jobs at a time as it may", _WAIT),
    "Reservation": ("waits", "its reservation has not begun", _WAIT),
    "PartitionDown": ("waits", "its partition is closed for now", "another `--partition`"),
    "PartitionInactive": ("waits", "its partition is closed for now", "another `--partition`"),
    "Dependency": ("depends", "it waits for another job", _WAIT),
    "JobHeldUser": ("held", "its owner holds it", _RELEASE),
    "JobHeldAdmin": ("held", "an administrator holds it", "ask the site"),
    "JobHoldMaxRequeue": ("held", "it was requeued too often", "ask the site"),
    "launch_failed_requeued_held": ("held", "its start failed, and Slurm holds it", _RELEASE),
    "PartitionTimeLimit": ("never", _TIME, "ask for a shorter `--time`"),
    "PartitionNodeLimit": ("never", _NODES, "ask for fewer `--nodes`"),
    "DependencyNeverSatisfied": ("never", _UNMET, "submit it without that dependency"),
    "BadConstraints": (
        *("never", "no node has the resources that it asks for"),
        "change `--gres` or the constraint",
    ),
    "PartitionConfig": (
        *("never", "its partition cannot give what it asks for"),
        "ask for less, or choose another `--partition`",
    ),
    "AccountNotAllowed": (
        *("never", "its account may not use the partition"),
        "choose another `--account` or `--partition`",
    ),
    "InvalidAccount": ("never", "its account is not valid", _ACCOUNT),
    "InvalidQOS": ("never", "its QOS is not valid", _QOS),
    "QOSNotAllowed": ("never", "the partition does not take its QOS", _QOS),
}
_DOWN = re.compile(r"UnavailableNodes:(\S+)")
_LIMIT = re.compile(r"(?:QOS|Assoc|Max)\w+")
_TOO_BIG = re.compile(r"PerJob|PerNode|MaxWall")
_THINGS = (
    *(("GRES", "GPUs"), ("Cpu", "CPUs"), ("CPU", "CPUs"), ("Mem", "memory"), ("Node", "nodes")),
    *(("Wall", "time"), ("Jobs", "jobs"), ("Submit", "jobs"), ("Billing", "billing units")),
)


def explain(reason: str | None) -> Waiting:
    """Explain why a job waits, from the reason that `squeue` gives."""
    word = (reason or "None").strip("()")
    plain = word.partition(",")[0].partition(":")[0].strip()
    if down := _DOWN.search(word):
        sentence = f"nodes that it needs are down or drained: {down[1]}"
        return Waiting("waits", sentence, "`sinfo -R` there tells why; ask for other nodes")
    if plain in _TABLE:
        return Waiting(*_TABLE[plain], reserved=plain == "ReqNodeNotAvail")
    if not _LIMIT.fullmatch(plain):
        return Waiting("unknown", f"Slurm says `{word}`", "the site's documentation explains it")
    thing = next((name for part, name in _THINGS if part in plain), "resources")
    if _TOO_BIG.search(plain):
        asked = f"it asks for more {thing} than a job may have (`{plain}`)"
        return Waiting("never", asked, "ask for less")
    place = "QOS" if plain.startswith("QOS") else "account"
    sharing = "the group's" if "Grp" in plain else "your"
    sentence = f"{sharing} limit on {thing} in this {place} is reached (`{plain}`)"
    return Waiting("quota", sentence, "it starts when other jobs under that limit end")


_WORDS: Mapping[str, str] = {
    "TIMEOUT": "its time limit was reached",
    "CANCELLED": "it was cancelled",
    "NODE_FAIL": "a node that it ran on failed",
    "OUT_OF_MEMORY": "it used more memory than it had asked for; `--mem` asks for more",
    "PREEMPTED": "a job of higher priority preempted it",
    "BOOT_FAIL": "its node did not boot",
    "DEADLINE": "it could not end before its deadline",
    "REVOKED": "another cluster took it over",
}
# In the log, the first that fits; a job may be cancelled for a reason that is told before.
_IN_LOG = (
    (re.compile(r"oom[-_ ]kill|out of memory|exceeded job memory", re.IGNORECASE), "OUT_OF_MEMORY"),
    (re.compile(r"CANCELLED AT \S+ DUE TO TIME LIMIT"), "TIMEOUT"),
    (re.compile(r"CANCELLED AT \S+ DUE TO PREEMPTION"), "PREEMPTED"),
    (re.compile(r"CANCELLED AT \S+ DUE TO NODE FAILURE"), "NODE_FAIL"),
    (re.compile(r"CANCELLED AT \S+ (?!DUE TO JOB REQUEUE)"), "CANCELLED"),
)
_OUT_OF_MEMORY_SIGNAL = 125  # Slurm's own number: the job's exit code is told as `0:125`
_OURS = ("COMPLETED", "FAILED", "")  # the job's own exit code says more


def ending(state: str, log: str) -> str | None:
    """Say how a job ended, `None` if it did by itself."""
    found = base_state(state)
    if found in _OURS:
        found = next((name for pattern, name in _IN_LOG if pattern.search(log)), "")
    if not found:
        return None
    words = f"{found}: {_WORDS[found]}" if found in _WORDS else f"Slurm says `{one_line(state)}`"
    by = re.fullmatch(r"CANCELLED by (\S+)", state.strip())
    return f"{words} by {by[1]}" if by else words


def unfinished_code(how: str) -> int:
    """Return the exit code of a job that Slurm ended and whose command exited with 0."""
    out_of_memory = how.startswith("OUT_OF_MEMORY")
    return 128 + (_OUT_OF_MEMORY_SIGNAL if out_of_memory else signal.SIGTERM)
