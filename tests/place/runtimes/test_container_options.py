"""The comparison of a container's options with the requested ones, in any notation."""

from __future__ import annotations

from typing import Any

import pytest

from jlremote.errors import Usage
from jlremote.laptop.settings.options import check_form
from jlremote.place.runtimes.container_options import (
    ARGUMENTS_LABEL,
    ContainerOptions,
    Difference,
    differences,
    refusal,
)
from jlremote.place.runtimes.container_options import options_of as read_with


def options_of(inspected: dict[str, Any]) -> ContainerOptions:
    return read_with(inspected, inspected["Config"]["Labels"])


# As docker 20.10 and podman 4.3 tell it.
DOCKER: dict[str, Any] = {
    "Mounts": [
        {"Type": "bind", "Source": "/raid/me", "Destination": "/data", "RW": False},
        {
            "Type": "volume",
            "Name": "cache",
            "Source": "/var/lib/docker/volumes/cache/_data",
            "Destination": "/cache",
            "RW": True,
        },
        {
            "Type": "volume",
            "Name": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "Destination": "/scratch",
            "RW": True,
        },
    ],
    "Config": {
        "Env": ["PATH=/usr/bin", "A=1"],
        "WorkingDir": "/data",
        "User": "1000:1000",
        "Labels": {ARGUMENTS_LABEL: "--cap-add 'SYS PTRACE'"},
    },
    "HostConfig": {
        "ShmSize": 1 << 30,
        "Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}],
        "IpcMode": "private",
        "NetworkMode": "default",
        "Init": True,
        "AutoRemove": False,
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "50m"}},
    },
}
PODMAN: dict[str, Any] = DOCKER | {
    "HostConfig": DOCKER["HostConfig"]
    | {
        "Ulimits": [{"Name": "RLIMIT_MEMLOCK", "Soft": -1, "Hard": -1}],
        "NetworkMode": "bridge",
        "LogConfig": {"Type": "k8s-file", "Config": None, "Size": "50MB"},
    },
    "Config": DOCKER["Config"]
    | {"CreateCommand": ["podman", "create", "--log-opt=max-size=50m", "--log-opt", "tag=x"]},
}


@pytest.mark.parametrize("inspected", [DOCKER, PODMAN], ids=["docker", "podman"])
@pytest.mark.parametrize(
    "asked",
    [
        ContainerOptions(),
        ContainerOptions(volumes=("/raid/me/:/data:ro,z", "cache:/cache:rw")),
        ContainerOptions(environment=("A=1", "PATH"), workdir="/data/", user="1000:1000"),
        ContainerOptions(shm_size="1024M", ulimits=("memlock=-1:-1", "stack=")),
        ContainerOptions(ipc="", network="bridge", init=True, remove=False),
        ContainerOptions(engine_arguments=("--cap-add", "SYS PTRACE")),
        ContainerOptions(volumes=("cache:/cache/",), log_options=("max-size=50m",)),
    ],
)
def test_the_same_in_other_words_is_no_difference(
    asked: ContainerOptions, inspected: dict[str, Any]
) -> None:
    assert differences(asked, options_of(inspected)) == []


@pytest.mark.parametrize(
    ("asked", "difference"),
    [
        (ContainerOptions(shm_size="8g"), Difference("shm-size", "8g", "1g")),
        (
            ContainerOptions(volumes=("/raid/me:/data",)),
            Difference("volume", "/raid/me:/data", "/raid/me:/data:ro"),
        ),
        (ContainerOptions(volumes=("/x:/x",)), Difference("volume", "/x:/x", None)),
        (ContainerOptions(environment=("A=2",)), Difference("env", "A=2", "A=1")),
        (ContainerOptions(environment=("B",)), Difference("env", "B", None)),
        (ContainerOptions(user="root"), Difference("user", "root", "1000:1000")),
        (ContainerOptions(ulimits=("memlock=9",)), Difference("ulimit", "memlock=9", "memlock=-1")),
        (ContainerOptions(ipc="host"), Difference("ipc", "host", "private")),
        (ContainerOptions(network="host"), Difference("network", "host", "default")),
        (ContainerOptions(init=False), Difference("init", "no", "yes")),
        (ContainerOptions(remove=True), Difference("rm", "yes", "no")),
        (
            ContainerOptions(log_options=("max-size=1m",)),
            Difference("log-opt", "max-size=1m", "max-size=50m"),
        ),
        (
            ContainerOptions(engine_arguments=("--privileged",)),
            Difference("engine-arguments", "--privileged", "--cap-add 'SYS PTRACE'"),
        ),
    ],
)
def test_a_difference_has_both_values(asked: ContainerOptions, difference: Difference) -> None:
    assert differences(asked, options_of(DOCKER)) == [difference]


@pytest.mark.parametrize("asked", ["root", "0", "0:0", "root:root", "root:0"])
def test_an_empty_user_is_root(asked: str) -> None:
    there = options_of(DOCKER | {"Config": DOCKER["Config"] | {"User": ""}})
    assert differences(ContainerOptions(user=asked), there) == []
    assert differences(ContainerOptions(user="1000"), there) == [Difference("user", "1000", "root")]


def test_podmans_log_options_are_read_from_its_note() -> None:
    assert set(options_of(PODMAN).log_options) == {"max-size=50m", "tag=x"}


def test_a_folder_below_the_home_is_known_by_its_end() -> None:
    there = ContainerOptions(volumes=("/home/me/data:/data",))
    assert differences(ContainerOptions(volumes=("~/data:/data",)), there) == []
    assert differences(ContainerOptions(volumes=("~/ata:/data",)), there) != []


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


@pytest.mark.parametrize(
    ("option", "good", "bad"),
    [
        ("volume", ("/a:/b", "~/a b:/b:ro,z", "data:/b", "./here:/b", "/a:/b:O,upperdir=/u"), "/a"),
        ("shm-size", ("1.5 GiB", "64m"), "big"),
        ("ulimit", ("memlock=-1", "nofile=1024:4096", "memlock="), "memlock"),
        ("ipc", ("container:db", "host"), "container:"),
        ("network", ("host", "my-net"), "a b"),
        ("log-opt", ("max-size=50m", "max-size=", "tag={{.Name}} x"), "max-size"),
    ],
)
def test_values_that_an_engine_may_take_go_to_the_host(
    option: str, good: tuple[str, ...], bad: str
) -> None:
    for value in good:
        assert check_form(option, value, "it") == value
    with pytest.raises(Usage, match="it cannot be"):
        check_form(option, bad, "it")


def test_other_errors_blame_no_option() -> None:
    assert refusal(ContainerOptions(), RUNC, "not permitted") is None
    assert refusal(ContainerOptions(ulimits=("memlock=-1",)), "no space left", "full") is None
