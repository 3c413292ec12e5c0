"""The cluster of the lab, and a laptop that knows its login node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab import images
from tests.lab.cluster import NEWER_SLURM, Cluster, running_cluster
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.place import Say
from tests.lab.remote_host import Keys
from tests.long import LONG

# Also run with a Slurm that is years newer, whose lists and defaults differ.
ALSO_NEWER = {
    "test_a_kernel_answers_on_a_node_and_a_second_start_joins_until_stop",
    "test_the_end_of_a_job_is_told_before_and_named_after",
    "test_each_reason_to_wait_is_told_in_a_sentence",
    "test_gpus_are_those_of_the_partitions_with_their_holders",
    "test_output_and_exit_code_are_the_jobs_own_and_no_variable_is_told",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat some tests with the newer cluster, whose packages change from day to day."""
    if "cluster" in metafunc.fixturenames:
        newer = [LONG("newer")] if metafunc.function.__name__ in ALSO_NEWER else []
        metafunc.parametrize("cluster", ["older", *newer], indirect=True, scope="session")


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, engine: Engine, keys: Keys, say: Say
) -> Iterator[Cluster]:
    """A cluster with two nodes of four cores and two GPUs each."""
    if request.param == "older":
        with running_cluster(engine, keys, say) as running:
            yield running
        return
    images.ensure(engine, say, (NEWER_SLURM,))
    with running_cluster(engine, keys, say, machines=NEWER_SLURM) as running:
        version = running.run("login", "sbatch", "--version").split()[-1]
        assert int(version.partition(".")[0]) > 24
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
def zih(request: pytest.FixtureRequest, cluster: Cluster, keys: Keys) -> Iterator[Laptop]:
    """The file's laptop, or a new one in a file with `NEW_LAPTOPS`; `zih` is the login node."""
    with cancelled_jobs(cluster):
        if not hasattr(request.module, "NEW_LAPTOPS"):
            yield request.getfixturevalue("file_zih")
            return
        with known_to(cluster, keys) as laptop:
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
