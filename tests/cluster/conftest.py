"""The cluster of the lab, and a laptop that knows its login node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.cluster import Cluster, running_cluster
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import Say
from tests.lab.remote_host import Keys


@pytest.fixture(scope="session")
def cluster(engine: Engine, keys: Keys, say: Say) -> Iterator[Cluster]:
    """A cluster with two nodes of four cores and two GPUs each."""
    with running_cluster(engine, keys, say) as running:
        yield running


@pytest.fixture
def zih(cluster: Cluster, keys: Keys) -> Iterator[Laptop]:
    """A new laptop that knows the login node as `zih`, for alice."""
    laptop = Laptop()
    try:
        cluster.add_to(laptop, "zih", keys)
        yield laptop
    finally:
        laptop.shut_down()
        laptop.remove()
        cluster.slurm("scancel", "--user=alice")
        cluster.slurm("scancel", "--user=bob")
