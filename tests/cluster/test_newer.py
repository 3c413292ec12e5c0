"""The same tests with a Slurm that is years newer, whose lists and defaults differ."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import test_run, test_sessions
from tests.lab import images
from tests.lab.cluster import NEWER_SLURM, Cluster, running_cluster
from tests.lab.engine import Engine
from tests.lab.place import Say
from tests.lab.remote_host import Keys

# Its packages change from day to day.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(engine: Engine, keys: Keys, say: Say) -> Iterator[Cluster]:
    images.ensure(engine, say, (NEWER_SLURM,))
    with running_cluster(engine, keys, say, machines=NEWER_SLURM) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def _is_newer(cluster: Cluster) -> None:
    assert int(cluster.run("login", "sbatch", "--version").split()[-1].partition(".")[0]) > 24


test_a_kernel_answers = (
    test_sessions.test_a_kernel_answers_on_a_node_and_a_second_start_joins_until_stop
)
test_the_end_is_named = test_sessions.test_the_end_of_a_job_is_told_before_and_named_after
test_reasons_are_told = test_run.test_each_reason_to_wait_is_told_in_a_sentence
test_gpus_are_listed = test_run.test_gpus_are_those_of_the_partitions_with_their_holders
test_output_is_shown = test_run.test_output_and_exit_code_are_the_jobs_own_and_no_variable_is_told
