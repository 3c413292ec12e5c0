"""`jlr wait` for jobs and sessions of a cluster: their end, and their time left."""

from __future__ import annotations

import json

from tests.cluster.parts import detached, name, on_node
from tests.lab.cluster import Cluster
from tests.lab.laptop import Laptop
from tests.sessions.parts import failed, started


def test_the_time_left_of_a_job_is_waited_for_and_its_end_comes_first(
    cluster: Cluster, zih: Laptop
) -> None:
    called = detached(zih, "--time", "2")
    ahead = zih.jlr("wait", called, "--for", "time-left=1m45s", "--json", timeout=120)
    told = json.loads(ahead.stdout)
    assert (ahead.status, told["name"], told["happened"]) == (0, f"zih/{called}", "time-left")
    failed(zih.jlr("wait", called, "--timeout", "1s"), 124, f"`jlr wait zih/{called} --for end")
    short = detached(zih, "--time", "5", command=("sh", "-c", "sleep 3; exit 4"))
    ended = zih.jlr("wait", short, "--for", "time-left=10s", "--json", timeout=120)
    assert (ended.status, json.loads(ended.stdout)["happened"]) == (4, "end"), ended


def test_a_session_on_a_node_is_waited_for_until_its_job_is_cancelled(
    cluster: Cluster, zih: Laptop
) -> None:
    called = name()
    session = started(zih, called, *on_node(1), "--time", "20", host="zih")
    left = zih.jlr("wait", called, "--for", "time-left=30m", "--json")
    assert (left.status, json.loads(left.stdout)["happened"]) == (0, "time-left"), left
    assert zih.jlr("wait", called, "--for", "idle").status == 0
    failed(zih.jlr("wait", called, "--timeout", "2s"), 124, f"zih/{called}")
    with zih.spawn("wait", called) as waiting:
        cluster.slurm("scancel", str(session.report["job"]))
        said = waiting.communicate(timeout=90)[0]
        assert (waiting.returncode, "job-ended" in said or "has ended" in said) == (0, True), said
