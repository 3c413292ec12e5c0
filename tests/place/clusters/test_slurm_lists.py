"""Lists of squeue, with the oddities of sites and releases."""

from __future__ import annotations

import pytest

from jlremote.place.clusters.scheduler import SchedulerSilent
from jlremote.place.clusters.slurm_lists import base_state, read_queue

HEAD = "JOBID\x1fNAME\x1fSTATE\x1fREASON\x1fSTART_TIME\x1fEND_TIME\x1fNODELIST\n"


@pytest.mark.parametrize(
    "words", ["CANCELLED by 1234", "CANCELLED+", "CANCELLED", "CANCELLED by root"]
)
def test_a_state_is_known_with_what_follows_it(words: str) -> None:
    assert base_state(words) == "CANCELLED"


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("PENDING", "waiting"),
        ("REQUEUED", "waiting"),
        ("CONFIGURING", "waiting"),
        ("SUSPENDED", "running"),
        ("COMPLETING", "running"),
        ("STOPPED", "running"),
        *(
            (state, "ended")
            for state in (
                *("COMPLETED", "FAILED", "CANCELLED by 1234", "TIMEOUT", "OUT_OF_MEMORY"),
                *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "REVOKED"),
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
