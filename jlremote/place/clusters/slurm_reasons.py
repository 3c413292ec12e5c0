"""Why a job of Slurm's waits (a sentence and an action for each reason), and how it ended.

The words are those of `job_state_reason_string` in Slurm's source. Unknown ones are given as Slurm
has them. A reason never makes jlr cancel a job: it may pass by itself.

Of an end Slurm's log is the better source: it stays when slurmctld has forgotten the job
(MinJobAge, 300 s) and the site has no accounting. Its words are those of `slurmstepd`
(`*** JOB 7 ON node1 CANCELLED AT … DUE TO TIME LIMIT ***`).
"""

from __future__ import annotations

import re
import signal
from types import MappingProxyType

from jlremote.place.clusters.scheduler import Waiting
from jlremote.place.clusters.slurm_lists import base_state
from jlremote.text import one_line

_WAIT = "nothing to do: it starts by itself"
_NO_NODE = "nodes that it needs are drained, down, or reserved for maintenance"
_LOOK = "`sinfo -R` and `scontrol show reservation` there tell which"
_SHORTER = "a job with a shorter `--time` may end before a maintenance"
_RELEASE = "`scontrol release JOB` lets it go"
_TIME = "its time is over the limit of the partition"
_NODES = "it asks for more nodes than the partition gives to a job"
_UNMET = "the job that it depends on did not end as it must"
_ACCOUNT = "choose another `--account`"
_QOS = "choose another `--qos`"
_TABLE = MappingProxyType(
    {
        "Priority": ("waits", "jobs with a higher priority are before it", _WAIT),
        "Resources": ("waits", "the resources that it asks for are in use", _WAIT),
        "None": ("waits", "Slurm has not looked at it yet", _WAIT),
        "BeginTime": ("waits", "its start time has not come", _WAIT),
        "Cleaning": ("waits", "its last run is still being cleaned up", _WAIT),
        "Licenses": ("waits", "all licences that it asks for are in use", _WAIT),
        "NodeDown": ("waits", "a node that it needs is down", "ask the site if it lasts"),
        # 26.05 has the same word, without names, for drained nodes, too.
        "ReqNodeNotAvail": ("waits", _NO_NODE, f"{_LOOK}; {_SHORTER}"),
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
)
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
        return Waiting(*_TABLE[plain])
    if _LIMIT.fullmatch(plain):
        return _limit(plain)
    return Waiting("unknown", f"Slurm says `{word}`", "the site's documentation explains it")


def _limit(word: str) -> Waiting:
    thing = next((name for part, name in _THINGS if part in word), "resources")
    if _TOO_BIG.search(word):
        asked = f"it asks for more {thing} than a job may have (`{word}`)"
        return Waiting("never", asked, "ask for less")
    place = "QOS" if word.startswith("QOS") else "account"
    sharing = "the group's" if "Grp" in word else "your"
    return Waiting(
        "quota",
        f"{sharing} limit on {thing} in this {place} is reached (`{word}`)",
        "it starts when other jobs under that limit end",
    )


_WORDS = MappingProxyType(
    {
        "TIMEOUT": "its time limit was reached",
        "CANCELLED": "it was cancelled",
        "NODE_FAIL": "a node that it ran on failed",
        "OUT_OF_MEMORY": "it used more memory than it had asked for; `--mem` asks for more",
        "PREEMPTED": "a job of higher priority preempted it",
        "BOOT_FAIL": "its node did not boot",
        "DEADLINE": "it could not end before its deadline",
        "REVOKED": "another cluster took it over",
    }
)
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
