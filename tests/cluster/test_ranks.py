"""Ranks of `jlr run --slurm`: several tasks of a node, and several nodes."""

from __future__ import annotations

import re
import signal

import pytest

from tests.cluster.parts import until
from tests.lab.cluster import Cluster
from tests.lab.laptop import Laptop
from tests.long import LONG

SLURM = ("run", "zih", "--slurm")
TELL = 'echo "$RANK of $WORLD_SIZE, $LOCAL_RANK here; $MASTER_PORT at $MASTER_ADDR"'
SUM = """\
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
number = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(number)
print(os.uname().nodename, dist.get_world_size(), number.item())
"""


@pytest.mark.parametrize("launcher", ["srun", LONG("torchrun")])
def test_eight_ranks_of_a_node_have_local_ranks_of_their_own(zih: Laptop, launcher: str) -> None:
    words = ("--nodes", "1", "--ntasks", "8", "--sbatch-arg=--overcommit", "--launcher", launcher)
    done = zih.jlr(*SLURM, *words, "--label", "--", "sh", "-c", TELL).checked()
    told = [re.split("[: ]+", line, maxsplit=1) for line in sorted(done.stdout.splitlines())]
    # PyTorch labels with the rank since 2.1; the lab's is older.
    label = "{}" if launcher == "srun" else "[default{}]"
    assert [begin for begin, _ in told] == [label.format(rank) for rank in range(8)]
    places = {line.partition(";")[2] for _, line in told}
    assert len(places) == 1, "all ranks meet at one address"
    assert [line.partition(";")[0] for _, line in told] == [f"{n} of 8, {n} here" for n in range(8)]


@pytest.mark.parametrize("launcher", ["srun", LONG("torchrun")])
def test_two_nodes_add_up_their_numbers(zih: Laptop, launcher: str) -> None:
    words = ("--nodes", "2", "--ntasks", "2", "--launcher", launcher)
    done = zih.jlr(*SLURM, *words, "--", "python3", "-c", SUM, timeout=120)
    assert (done.status, sorted(done.stdout.splitlines())) == (
        0,
        ["node1 2 3.0", "node2 2 3.0"],
    ), done


@pytest.mark.parametrize(
    ("launcher", "nodes", "words"),
    [("srun", "2", "task 1: Killed"), LONG("torchrun", "2", "Signal 9 (SIGKILL)")],
)
def test_a_rank_that_dies_ends_the_job(zih: Laptop, launcher: str, nodes: str, words: str) -> None:
    text = '[ "$RANK" != 1 ] || kill -9 $$; exec sleep 300'
    # An agent of torchrun looks at its ranks every five seconds, unless it is told otherwise.
    often = "PET_MONITOR_INTERVAL=0.1"
    asked = ("--nodes", nodes, "--ntasks", "4", "--launcher", launcher, "-e", often)
    done = zih.jlr(*SLURM, *asked, "--", "sh", "-c", text)
    assert done.status not in (0, 130), done
    assert words in done.stderr


def test_ctrl_c_reaches_every_rank(zih: Laptop) -> None:
    text = "trap 'echo rank $RANK; kill $!; sleep 2; exit 9' INT; sleep 300 & echo up; wait"
    words = ("--nodes", "2", "--ntasks", "4", "--launcher", "srun")
    with zih.spawn(*SLURM, *words, "--", "sh", "-c", text) as started:
        assert started.stdout
        lines = iter(started.stdout.readline, "")
        for _ in range(4):
            until(lines, "up")
        started.send_signal(signal.SIGINT)
        told = sorted(line for line in lines if line.startswith("rank"))
        assert started.wait(60) in (9, 128 + signal.SIGTERM), "the first that exits ends the rest"
    assert told == [f"rank {rank}\n" for rank in range(4)]


def test_ranks_run_in_an_image_which_is_tried_before_it_is_queued(
    cluster: Cluster, zih: Laptop
) -> None:
    if cluster.image is None:
        pytest.skip("this machine cannot have Apptainer")
    words = ("--nodes", "2", "--ntasks", "2", "--launcher", "srun", "-e", "WORD=xyzzy")
    image = (
        "--runtime",
        "singularity",
        "--image",
        str(cluster.image),
        "-v",
        "/etc/slurm:/mnt/slurm",
    )
    text = 'ls /mnt/slurm/gres.conf >&2; echo "$RANK $WORD $(command -v jupyter) ${MASTER_ADDR%.*}"'
    done = zih.jlr(*SLURM, *words, *image, "--", "sh", "-c", text)
    assert (done.status, done.stderr.count("/mnt/slurm/gres.conf\n")) == (0, 2), done
    told = sorted(done.stdout.splitlines())
    assert [line.split()[:3] for line in told] == [
        [rank, "xyzzy", "/opt/jupyter/bin/jupyter"] for rank in ("0", "1")
    ]
    assert told[0].split()[3] == told[1].split()[3] != "127.0.0"
    cut = "head -c 100000 IMAGE >/home/alice/cut.sif".replace("IMAGE", str(cluster.image))
    cluster.run("login", "sh", "-c", cut)
    started = ("start", "zih", "cut", "--slurm", "--image", "cut.sif", "--no-browser")
    for refused in (zih.jlr(*SLURM, "--image", "cut.sif", "--", "true"), zih.jlr(*started)):
        refused.checked(1, "the file may be cut short: copy or pull it again")
    assert "cut." not in cluster.slurm("squeue", "--states=all", "--format=%j")
