"""What is told of jobs on a cluster: why they are refused, why they wait, and how they ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import cancelled_jobs
from tests.cluster.test_sessions import listed, name
from tests.lab.cluster import Cluster
from tests.lab.laptop import Laptop
from tests.sessions.parts import failed, start


@pytest.fixture
def zih(cluster: Cluster, file_zih: Laptop) -> Iterator[Laptop]:
    with cancelled_jobs(cluster):
        yield file_zih


def test_a_module_that_is_unknown_is_named(zih: Laptop) -> None:
    called = name()
    refused = start(zih, "zih", called, "--slurm", "--module", "nosuch", "--cpus", "1")
    failed(refused, 1, 'module(s) are unknown:\n"nosuch"', "`module load nosuch` failed")
    assert "its last words: jlr: `module load nosuch` failed" in listed(zih, called)["detail"]
