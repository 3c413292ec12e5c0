"""GPUs that Slurm has given on a node where people also work beside it; the hardware is no real."""

from __future__ import annotations

from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import read, snapshot_script
from tests.cluster.conftest import cancelled_jobs
from tests.gpus.parts import row, uuid
from tests.lab.cluster import Cluster

NODE, HERE = "node2", "/opt/jlr-lab-smi"
SMI = f"""\
#!/bin/sh
case $1 in --query-gpu=*) printf '%s\\n' '{row(0)}' '{row(1)}';; esac
"""
AWAY = "/etc/slurm/away.conf"


def look(cluster: Cluster, begin: str = "") -> Inventory:
    """Return what the node tells of its GPUs, as `jlr gpus` asks it."""
    script = f"PATH={HERE}:$PATH; {begin}\n{snapshot_script(())}"
    return read(cluster.run(NODE, "sh", "-c", script), NODE)


def begun(cluster: Cluster, user: str, *options: str) -> str:
    words = (*options, "--gres=gpu:1", "--output=/dev/null", "--wrap", "sleep 600")
    job = cluster.run("login", "sbatch", "--parsable", *words, user=user)
    cluster.wait_state(job, "RUNNING")
    return job


def test_gpus_of_jobs_that_idle_are_not_free_on_their_node(cluster: Cluster) -> None:
    put = f'mkdir -p {HERE}; printf %s "$0" >{HERE}/nvidia-smi; chmod +x {HERE}/nvidia-smi'
    cluster.run(NODE, "sh", "-c", put, SMI)
    with cancelled_jobs(cluster):
        assert [gpu.state for gpu in look(cluster).gpus] == ["free", "free"]
        alone = begun(cluster, "alice", f"--nodelist={NODE}")
        first, second = look(cluster).devices
        assert (first.state(), second.state()) == ("assigned, idle", "free")
        [claim] = first.claims
        assert (claim.kind, claim.name, claim.user) == ("job", alone, "alice")
        wide = begun(cluster, "bob", "--nodes=2")
        names = [claim.name for device in look(cluster).devices for claim in device.claims]
        assert names == [alone, wide]
        # Who is let into a job alone sees its GPUs only, which nobody else has.
        cluster.run(NODE, "sh", "-c", put, SMI.replace(f" '{row(1)}'", ""))
        [own] = look(cluster).devices
        assert (own.uuid, own.state()) == (uuid(0), "free")
        cluster.run(NODE, "sh", "-c", put, SMI)
    # A controller that is away is no "none"; it is waited for less long.
    elsewhere = "sed s/Host=controller/Host=localhost/ /etc/slurm/slurm.conf"
    cluster.run(NODE, "sh", "-c", f"({elsewhere}; echo MessageTimeout=1) >{AWAY}")
    silent = look(cluster, f"export SLURM_CONF={AWAY}")
    assert [gpu.state for gpu in silent.gpus] == ["cannot tell", "cannot tell"]
    assert silent.unseen.startswith("Slurm: ")
