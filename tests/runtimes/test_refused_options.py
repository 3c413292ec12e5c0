"""Which option a host does not allow is told, with the way to leave it out."""

from __future__ import annotations

import pytest

from jlremote.errors import Usage
from jlremote.runtimes.container_options import ContainerOptions
from jlremote.runtimes.refused_options import refusal

RUNC = (
    "error setting rlimits for ready process: error setting rlimit type 8: operation not permitted"
)
CRUN = "crun: setrlimit `RLIMIT_MEMLOCK`: Operation not permitted: OCI permission denied"
CAPS = "unable to start container process: unable to apply caps: operation not permitted"


@pytest.mark.parametrize("complaint", [RUNC, CRUN])
def test_a_limit_that_the_kernel_refuses(complaint: str) -> None:
    options = ContainerOptions(ulimits=("stack=67108864", "memlock=-1"))
    error = refusal(options, complaint, "not permitted")
    assert error is not None
    assert error.message == "the host does not allow `--ulimit memlock=-1`: not permitted"
    assert "`--ulimit memlock=` takes it away" in (error.hint or "")


@pytest.mark.parametrize("words", [("--privileged",), ("--cap-add=SYS_ADMIN",)])
def test_rights_that_the_host_does_not_have(words: tuple[str, ...]) -> None:
    error = refusal(ContainerOptions(engine_arguments=words), CAPS, "not permitted")
    assert error is not None
    assert f"`{words[0]}`" in error.message


def test_a_bound_that_the_log_does_not_know() -> None:
    complaint = "unknown log opt 'max-size' for journald log driver"
    error = refusal(ContainerOptions(), complaint, complaint)
    assert error is not None
    assert "`--log-opt max-size=` takes it away" in (error.hint or "")


def test_an_option_that_the_engine_does_not_have() -> None:
    options = ContainerOptions(engine_arguments=("--gpu=all",))
    error = refusal(options, "unknown flag: --gpu\nUsage:  docker create", "unknown flag: --gpu")
    assert type(error) is Usage
    assert "no option `--gpu`" in error.message


def test_what_is_no_options_fault() -> None:
    assert refusal(ContainerOptions(), RUNC, "not permitted") is None
    assert refusal(ContainerOptions(ulimits=("memlock=-1",)), "no space left", "full") is None
