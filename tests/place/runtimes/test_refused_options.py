"""The errors of refused options, and how to leave each out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.errors import NotFound, Usage
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.refused_options import check_values, refusal

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
    assert "`--ulimit memlock=` leaves it out" in (error.hint or "")


@pytest.mark.parametrize("words", [("--privileged",), ("--cap-add=SYS_ADMIN",)])
def test_rights_that_the_host_does_not_have(words: tuple[str, ...]) -> None:
    error = refusal(ContainerOptions(engine_arguments=words), CAPS, "not permitted")
    assert error is not None
    assert f"`{words[0]}`" in error.message


def test_a_bound_that_the_log_does_not_know() -> None:
    complaint = "unknown log opt 'max-size' for journald log driver"
    error = refusal(ContainerOptions(), complaint, complaint)
    assert error is not None
    assert "`--log-opt max-size=` leaves it out" in (error.hint or "")


def test_an_option_that_the_engine_does_not_have() -> None:
    options = ContainerOptions(engine_arguments=("--gpu=all",))
    error = refusal(options, "unknown flag: --gpu\nUsage:  docker create", "unknown flag: --gpu")
    assert type(error) is Usage
    assert "no option `--gpu`" in error.message


@pytest.mark.parametrize(
    ("complaint", "told"),
    [
        ("the working directory 'rel' is invalid, it needs to be an absolute path", "workdir rel"),
        ('workdir "rel" does not exist on container 5ff1', "workdir rel"),
        ("unable to find user me: no matching entries in passwd file", "user me"),
        ("uids and gids must be in range 0-2147483647", "user me"),
        ("Invalid IPC mode: odd", "ipc odd"),
        ("invalid volume specification: '/a:b': mount path must be absolute", "volume"),
        ("invalid spec: :/x: empty section between colons", "volume"),
        ("invalid mode: bogus", "volume"),
        ("failed to initialize logging driver: invalid size: 'many'", "log-opt"),
        # Podman's words for the same, where docker has none.
        ('workdir "rel" exists on container 5ff1, but is not a directory', "workdir rel"),
        ("Cannot mkdir: rel is not a directory", "workdir rel"),
        ("unrecognized namespace mode odd passed", "ipc odd"),
        ("unable to translate --shm-size: invalid size: 'lots'", "shm-size lots"),
        ('invalid argument "-1" for "--shm-size" flag: invalid size: \'-1\'', "shm-size lots"),
        ('ulimit option "a=1" requires name=SOFT:HARD, …: invalid ulimit type: a', "ulimit"),
        ('invalid argument "a=1" for "--ulimit" flag: invalid ulimit type: a', "ulimit"),
        ('invalid environment variable: "=x"', "env"),
        ("a:b:c:d: incorrect volume format, should be [host-dir:]ctr-dir[:option]", "volume"),
        ("container directory cannot be empty", "volume"),
        ("invalid size: 'many'", "log-opt"),
    ],
)
def test_a_value_that_no_engine_takes_is_the_persons_mistake(complaint: str, told: str) -> None:
    options = ContainerOptions(
        workdir="rel",
        user="me",
        ipc="odd",
        shm_size="lots",
        volumes=("/a:b",),
        environment=("=x",),
        ulimits=("a=1",),
        log_options=("max-size=many",),
    )
    error = refusal(options, f"Error: {complaint}", complaint)
    assert type(error) is Usage
    assert error.message == f"invalid `--{told}`: {complaint}"


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


def test_an_option_that_was_not_given_is_not_blamed() -> None:
    mount = ContainerOptions(engine_arguments=("--mount", "type=bind,src=/nope,dst=/y"))
    complaint = 'invalid mount config for type "bind": bind source path does not exist: /nope'
    assert refusal(mount, complaint, complaint) is None
    short = ContainerOptions(engine_arguments=("-v=/a:b",))
    told = refusal(short, "invalid spec: /a:b", "invalid spec: /a:b")
    assert told is not None
    assert "`--volume`" in told.message


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (ContainerOptions(network="mine"), "network mine not found"),
        (ContainerOptions(network="container:db"), "No such container: db"),
        (ContainerOptions(ipc="container:db"), "No such container: db"),
    ],
)
def test_a_missing_container_to_share_with_is_named(
    options: ContainerOptions, complaint: str
) -> None:
    error = refusal(options, complaint, complaint)
    assert type(error) is NotFound
    assert f"{options.network or options.ipc}`: {complaint}" in error.message


def test_other_errors_blame_no_option() -> None:
    assert refusal(ContainerOptions(), RUNC, "not permitted") is None
    assert refusal(ContainerOptions(ulimits=("memlock=-1",)), "no space left", "full") is None
