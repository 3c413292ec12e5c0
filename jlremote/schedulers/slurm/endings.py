"""How a job of Slurm's ended, by its state or by the words that Slurm wrote into its log.

The log is the better source: it stays when slurmctld has forgotten the job (MinJobAge, 300 s) and
the site has no accounting. Its words are those of `slurmstepd` (`*** JOB 7 ON node1 CANCELLED AT …
DUE TO TIME LIMIT ***`).
"""

from __future__ import annotations

import re
import signal
from types import MappingProxyType

from jlremote.schedulers.slurm.queue import base_state
from jlremote.text import one_line

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
    """Return the exit code of a job whose command took such an end well: 128 + N for signal N."""
    out_of_memory = how.startswith("OUT_OF_MEMORY")
    return 128 + (_OUT_OF_MEMORY_SIGNAL if out_of_memory else signal.SIGTERM)
