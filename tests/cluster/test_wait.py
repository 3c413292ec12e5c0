"""`jlr wait` for jobs of a cluster: their end, and their time left."""

from __future__ import annotations

import json

from tests.cluster.parts import detached
from tests.lab.cluster import Cluster
from tests.lab.laptop import Laptop
from tests.sessions.parts import failed


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
