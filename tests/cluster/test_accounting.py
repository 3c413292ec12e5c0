"""A cluster with accounts and limits: what they refuse, what they let wait, and what they know."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import known_to
from tests.cluster.parts import detached, job, name, running
from tests.lab.cluster import Cluster, running_cluster
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import Say
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys

# Limits for each user: one GPU, one job.
ACCOUNTS = """\
add qos single set MaxTRESPerUser=gres/gpu=1
add qos alone set MaxJobsPerUser=1
add account physics set qos=normal,single,alone
add account tiny set GrpTRES=cpu=1
add user alice,bob account=physics
add user alice account=tiny
"""


@pytest.fixture(scope="module")
def accounting(engine: Engine, keys: Keys, say: Say) -> Iterator[Cluster]:
    with running_cluster(engine, keys, say, accounting=True) as running:
        for line in ACCOUNTS.splitlines():
            running.slurm("sacctmgr", "--immediate", "--quiet", *line.split())
        yield running


@pytest.fixture
def zih(accounting: Cluster, keys: Keys) -> Iterator[Laptop]:
    with known_to(accounting, keys) as laptop:
        yield laptop


def test_limits_of_accounts_are_told_and_who_cancelled_a_job(
    accounting: Cluster, zih: Laptop
) -> None:
    wide = detached(zih, "--account", "tiny", "--cpus", "2")
    alone = [detached(zih, "--qos", "alone") for _ in range(2)]
    single = [detached(zih, "--qos", "single", "--gres", "gpu:1", "--time", "5") for _ in range(2)]
    running(zih, alone[0])
    running(zih, single[0])
    wanted = {
        wide: "the group's limit on CPUs in this account is reached (`AssocGrpCpuLimit`)",
        alone[1]: "your limit on jobs in this QOS is reached (`QOSMaxJobsPerUserLimit`)",
        single[1]: "your limit on GPUs in this QOS is reached (`QOSMaxGRESPerUser`)",
    }
    for called, sentence in wanted.items():
        wait_until(lambda: job(zih, called)["reason"] == sentence, f"`{sentence}`")  # noqa: B023
    accounting.slurm("scancel", *(job(zih, each)["job"] for each in (alone[0], single[1])))
    for each in (alone[0], single[1]):
        done = zih.jlr("job", "attach", each)
        assert "CANCELLED: it was cancelled by root" in done.stderr, done


def test_what_an_account_may_not_do_is_refused_with_the_accounts(zih: Laptop) -> None:
    words = ("run", "zih", "--slurm", "--name", name())
    zih.jlr(*words, "--account", "chemistry", "--", "true").checked(
        1, "Invalid account or account/partition combination", "your accounts: physics, tiny"
    )
    limited = zih.jlr(*words, "--qos", "nope", "--", "true")
    assert "Invalid qos specification" in limited.stderr
    told = zih.jlr("doctor", "zih", "--json", "--no-input").stdout
    assert "your accounts: physics, tiny" in told
