"""Lists of `squeue`: the user's jobs, a line each."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jlremote.place.clusters.contract import QueuedJob, SchedulerSilent
from jlremote.place.host.answers import FIELD, understood
from jlremote.text import one_line
from jlremote.untrusted import moment

# squeue's letters of the columns, in the order of the fields below.
COLUMNS = ("%i", "%j", "%T", "%r", "%S", "%e", "%N")
HEADING = "JOBID"
PENDING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD")
RUNNING = (
    *("RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"),
    "SPECIAL_EXIT",
)
_DENIED = re.compile(r"access/permission denied|permission denied", re.IGNORECASE)
_NOTHING = ("None", "N/A", "(null)", "", "NonZeroExitCode")


@understood("Slurm")
def read_queue(printed: str) -> Mapping[str, QueuedJob]:
    """Return the jobs by id. The heading proves an answer; text before it is the site's.

    Raises:
        SchedulerSilent: there is no heading.
    """
    lines = printed.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith(HEADING + FIELD)), None)
    if start is None:
        raise silence(printed, "squeue")
    rows = (
        line.split(FIELD) for line in lines[start + 1 :] if line.count(FIELD) >= len(COLUMNS) - 1
    )
    return {fields[0]: _job(fields) for fields in rows}


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
    job, name, words, reason, start, end, nodes = fields[: len(COLUMNS)]
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
    """Return the state without what follows it: `CANCELLED by 1234`, `CANCELLED+`."""
    return words.strip().partition(" ")[0].rstrip("+")
