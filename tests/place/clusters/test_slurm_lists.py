"""The states of Slurm's jobs, why they wait, and how they ended."""

from __future__ import annotations

import pytest

from jlremote.place.clusters.scheduler import SchedulerSilent
from jlremote.place.clusters.slurm_lists import ending, explain, read_queue, unfinished_code


@pytest.mark.parametrize(
    ("reason", "kind", "words"),
    [
        ("Priority", "waits", "higher priority"),
        ("Resources", "waits", "in use"),
        (None, "waits", "not looked at it"),
        ("ReqNodeNotAvail, UnavailableNodes:node1", "waits", "down or drained: node1"),
        ("ReqNodeNotAvail, May be reserved for other job", "waits", "maintenance"),
        ("Nodes required for job are DOWN, DRAINED or reserved", "waits", "drained, down"),
        ("QOSMaxGRESPerUser", "quota", "your limit on GPUs in this QOS"),
        ("AssocGrpGRES", "quota", "the group's limit on GPUs in this account"),
        ("AssocGrpCPUMinutesLimit", "quota", "the group's limit on CPUs"),
        ("QOSMaxJobsPerUserLimit", "quota", "your limit on jobs"),
        ("QOSMaxCpuPerJobLimit", "never", "more CPUs than a job may have"),
        ("AssocMaxWallDurationPerJobLimit", "never", "more time than a job may have"),
        ("JobHeldUser", "held", "its owner holds it"),
        ("JobHeldAdmin", "held", "administrator"),
        ("Dependency", "depends", "another job"),
        ("PartitionTimeLimit", "never", "limit of the partition"),
        ("DependencyNeverSatisfied", "never", "did not end as it must"),
        ("PartitionConfig", "never", "cannot give"),
        ("BadConstraints", "never", "no node has"),
        ("SomethingNew", "unknown", "Slurm says `SomethingNew`"),
    ],
)
def test_each_kind_of_reason_is_told(reason: str | None, kind: str, words: str) -> None:
    told = explain(reason)
    assert told.kind == kind
    assert words in told.sentence
    assert told.action


AT = "slurmstepd: error: *** JOB 7 ON node1 CANCELLED AT 2026-11-22T23:08:56"


@pytest.mark.parametrize("state", ["", "COMPLETED", "FAILED"])
@pytest.mark.parametrize("log", ["", f"{AT} DUE TO JOB REQUEUE ***"])
def test_an_end_of_its_own_needs_no_words(state: str, log: str) -> None:
    assert ending(state, log) is None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("TIMEOUT", "TIMEOUT: its time limit was reached"),
        ("CANCELLED by bob", "CANCELLED: it was cancelled by bob"),
        ("CANCELLED+", "CANCELLED: it was cancelled"),
        ("NODE_FAIL", "NODE_FAIL: a node that it ran on failed"),
        ("OUT_OF_MEMORY", "OUT_OF_MEMORY: it used more memory"),
        ("PREEMPTED", "PREEMPTED: a job of higher"),
        ("BRAND_NEW", "Slurm says `BRAND_NEW`"),
    ],
)
def test_a_state_is_named(state: str, words: str) -> None:
    assert (ending(state, "") or "").startswith(words)


@pytest.mark.parametrize(
    ("log", "name"),
    [
        (f"{AT} DUE TO TIME LIMIT ***", "TIMEOUT"),
        (f"{AT} DUE TO PREEMPTION ***", "PREEMPTED"),
        (f"{AT} DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", "NODE_FAIL"),
        (f"{AT} ***", "CANCELLED"),
        ("slurmstepd-node1: error: Exceeded job memory limit", "OUT_OF_MEMORY"),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch.", "OUT_OF_MEMORY"),
    ],
)
@pytest.mark.parametrize("state", ["", "FAILED"])
def test_the_log_tells_it_when_slurm_has_forgotten_the_job(state: str, log: str, name: str) -> None:
    assert (ending(state, log) or "").startswith(f"{name}: ")


@pytest.mark.parametrize(("state", "code"), [("OUT_OF_MEMORY", 128 + 125), ("TIMEOUT", 128 + 15)])
def test_the_exit_code_of_an_end_by_slurm_is_its_signal(state: str, code: int) -> None:
    """Slurm tells them as `0:125` and `0:15`."""
    assert unfinished_code(ending(state, "") or "") == code


HEAD = "JOBID\x1fNAME\x1fSTATE\x1fREASON\x1fSTART_TIME\x1fEND_TIME\x1fNODELIST\n"


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("PENDING", "waiting"),
        ("SUSPENDED", "running"),
        *(
            (state, "ended")
            for state in (
                *("COMPLETED", "FAILED", "CANCELLED by root", "TIMEOUT", "OUT_OF_MEMORY"),
                *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "REVOKED", "CANCELLED+"),
            )
        ),
    ],
)
def test_each_state_has_a_phase(state: str, phase: str) -> None:
    [job] = read_queue(f"{HEAD}7\x1fx\x1f{state}\x1fNone\x1fN/A\x1fN/A\x1f\n").values()
    assert job.phase == phase


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
        "slurm_load_jobs error: Socket timed out on send/recv operation\n",
    ],
)
def test_without_the_heading_nothing_is_known(printed: str) -> None:
    with pytest.raises(SchedulerSilent):
        read_queue(printed)
