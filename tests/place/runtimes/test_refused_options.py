"""The errors of refused options, and how to leave each out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.errors import Usage
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.refused_options import check_values, refusal

RUNC = (
    "error setting rlimits for ready process: error setting rlimit type 8: operation not permitted"
)
CRUN = "crun: setrlimit `RLIMIT_MEMLOCK`: Operation not permitted: OCI permission denied"


@pytest.mark.parametrize("complaint", [RUNC, CRUN])
def test_a_limit_that_the_kernel_refuses(complaint: str) -> None:
    options = ContainerOptions(ulimits=("stack=67108864", "memlock=-1"))
    error = refusal(options, complaint, "not permitted")
    assert error is not None
    assert error.message == "the host does not allow `--ulimit memlock=-1`: not permitted"
    assert "`--ulimit memlock=` leaves it out" in (error.hint or "")


def test_a_bound_that_the_log_does_not_know() -> None:
    complaint = "unknown log opt 'max-size' for journald log driver"
    error = refusal(ContainerOptions(), complaint, complaint)
    assert error is not None
    assert "`--log-opt max-size=` leaves it out" in (error.hint or "")


def test_values_that_an_engine_may_take_go_to_the_host() -> None:
    options = ContainerOptions(
        volumes=("/a:/b", "~/a b:/b:ro,z", "data:/b", "./here:/b", "/a:/b:O,upperdir=/u"),
        workdir="/data",
        user="1000:1000",
        shm_size="1.5 GiB",
        ulimits=("memlock=-1", "nofile=1024:4096", "memlock="),
        ipc="container:db",
        network="host",
        log_options=("max-size=50m", "max-size=", "tag={{.Name}} x"),
    )
    check_values(options)
    with pytest.raises(Usage, match="invalid `--log-opt max-size`"):
        check_values(replace(options, log_options=("max-size=1m", "max-size")))


def test_other_errors_blame_no_option() -> None:
    assert refusal(ContainerOptions(), RUNC, "not permitted") is None
    assert refusal(ContainerOptions(ulimits=("memlock=-1",)), "no space left", "full") is None
