"""The cluster of the lab, and a laptop that knows its login node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab.cluster import Cluster, running_cluster
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.place import Say
from tests.lab.remote_host import Keys


@pytest.fixture(scope="session")
def cluster(engine: Engine, keys: Keys, say: Say) -> Iterator[Cluster]:
    """A cluster with two nodes of four cores and two GPUs each."""
    with running_cluster(engine, keys, say) as running:
        yield running


@contextmanager
def known_to(cluster: Cluster, keys: Keys, balancer: Line | None = None) -> Iterator[Laptop]:
    """Give a new laptop that knows the login node, or a way to both, as `zih`, for alice."""
    laptop = Laptop()
    try:
        cluster.add_to(laptop, "zih", keys, balancer)
        yield laptop
    finally:
        laptop.shut_down()
        laptop.remove()


@pytest.fixture
def other(cluster: Cluster, keys: Keys) -> Iterator[Laptop]:
    """A second laptop of hers."""
    with known_to(cluster, keys) as laptop:
        yield laptop


@pytest.fixture
def zih(cluster: Cluster, keys: Keys) -> Iterator[Laptop]:
    """A new laptop that knows the login node as `zih`, for alice."""
    with cancelled_jobs(cluster), known_to(cluster, keys) as laptop:
        yield laptop


@pytest.fixture(scope="module")
def file_zih(cluster: Cluster, keys: Keys) -> Iterator[Laptop]:
    """The same laptop for all tests of a file, which saves a link for each."""
    with known_to(cluster, keys) as laptop:
        yield laptop


@contextmanager
def cancelled_jobs(cluster: Cluster) -> Iterator[None]:
    """Cancel all jobs at the end of a `with` block."""
    try:
        yield
    finally:
        cluster.slurm("scancel", "--user=alice")
        cluster.slurm("scancel", "--user=bob")
