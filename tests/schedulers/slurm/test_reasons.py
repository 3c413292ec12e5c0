"""Why a job waits: a kind, a sentence and an action."""

from __future__ import annotations

import pytest

from jlremote.schedulers.slurm.reasons import explain


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
