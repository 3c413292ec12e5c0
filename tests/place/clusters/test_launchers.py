"""The text that starts ranks, run by a real shell beside an `srun` that starts one task."""

from __future__ import annotations

import subprocess
from pathlib import Path
from string import Template

import pytest

from jlremote.errors import Usage
from jlremote.place.clusters.launchers import indices, launched, task
from jlremote.place.clusters.scheduler import Ranks
from tests.lab.programs import write_program
from tests.place.host.shells import run_sh

PROGRAMS = {
    "scontrol": "echo node1; echo node2",
    "getent": 'echo "$ADDRESS STREAM node1"',
    "torchrun": 'echo "torchrun $*"; env | grep ^PET_ | sort',
    "srun": """\
echo "$@" >&2
export SLURM_PROCID=5 SLURM_LOCALID=1 SLURM_NODEID=1
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
""",
}
VARIABLES = {
    "ADDRESS": "10.0.0.1",
    "SLURM_JOB_ID": "50007",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_NODELIST": "node[1-2]",
    "SLURM_NTASKS": "8",
}
PRINT = ("sh", "-c", 'echo "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT"')


def run(
    folder: Path, command: tuple[str, ...], ranks: Ranks, **variables: str
) -> subprocess.CompletedProcess[str]:
    for name, text in PROGRAMS.items():
        write_program(folder / name, f"#!/bin/sh\n{text}\n")
    surroundings = {"PATH": f"{folder}:/usr/bin:/bin"} | VARIABLES | variables
    return run_sh("sh", launched(task(command, ranks), ranks), **surroundings)


def test_torchrun_gets_a_task_of_each_node(tmp_path: Path) -> None:
    done = run(tmp_path, ("python", "train.py"), Ranks("torchrun"), SLURM_CPUS_PER_TASK="3")
    words = "--kill-on-bad-exit=1 --ntasks=2 --ntasks-per-node=1 --cpu-bind=none sh -c"
    assert done.stderr.startswith(words)
    assert done.stdout.splitlines() == [
        "torchrun --no_python python train.py",
        "PET_NNODES=2",
        "PET_NPROC_PER_NODE=4",
        "PET_RDZV_BACKEND=c10d",
        "PET_RDZV_CONF=is_host=false",
        "PET_RDZV_ENDPOINT=10.0.0.1:20007",
        "PET_RDZV_ID=50007",
    ]


def test_without_tasks_torchrun_takes_the_gpus_and_a_script_is_python(tmp_path: Path) -> None:
    several = {"SLURM_NTASKS": "2", "SLURM_GPUS_ON_NODE": "4", "PET_MAX_RESTARTS": "3"}
    done = run(tmp_path, ("train.py", "-x"), Ranks("torchrun", label=True), **several)
    lines = done.stdout.splitlines()
    assert lines[0] == "torchrun train.py -x"
    assert {"PET_NPROC_PER_NODE=4", "PET_MAX_RESTARTS=3", "PET_TEE=3"} <= set(lines)


def test_an_argument_reaches_the_ranks_of_torchrun_as_it_is() -> None:
    given = "kill $$; echo ${local_rank} $RANK"
    *_, told = task(("sh", "-c", given), Ranks("torchrun"))
    assert Template(told).safe_substitute(local_rank=0) == given  # as torchrun does


@pytest.mark.parametrize("address", ["127.0.1.1", "::1"])
def test_an_address_that_no_other_node_reaches_is_refused(tmp_path: Path, address: str) -> None:
    done = run(tmp_path, PRINT, Ranks("srun"), ADDRESS=address)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"on node1 its own name is {address}, which other nodes do not reach" in done.stderr
    one = run(tmp_path, PRINT, Ranks("srun"), ADDRESS=address, SLURM_JOB_NUM_NODES="1")
    given = run(tmp_path, PRINT, Ranks("srun"), ADDRESS=address, MASTER_ADDR="10.1.0.1")
    assert (one.stdout, given.stdout) == (f"5 1 8 {address} 20007\n", "5 1 8 10.1.0.1 20007\n")


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        ("0-3", (0, 1, 2, 3)),
        ("7", (7,)),
        ("5-9:2,1,3", (1, 3, 5, 7, 9)),
        ("0-99%4", tuple(range(100))),
        ("1,1-2", (1, 2)),
    ],
)
def test_indices_are_read(array: str, wanted: tuple[int, ...]) -> None:
    assert indices(array, "") == wanted


@pytest.mark.parametrize("array", ["", "a", "3-1", "1-9:0", "1,", "0-3%", "0-3%x", "-1", "$(id)"])
def test_what_slurm_would_not_take_is_refused(array: str) -> None:
    with pytest.raises(Usage, match="names no indices"):
        indices(array, "")


@pytest.mark.parametrize(
    ("limit", "last"), [("", 4_000_000), ("1001\n", 1000), ("a banner\n", 4_000_000)]
)
def test_indices_above_the_limit_are_refused_at_once(limit: str, last: int) -> None:
    assert indices(f"0,{last}", limit) == (0, last)
    with pytest.raises(Usage, match=f"takes indices up to {last} there"):
        indices("0-999999999", limit)
