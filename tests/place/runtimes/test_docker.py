"""Docker's argv, and its answers and refusals, told apart by their remedies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jlremote.errors import Busy, JlrError, Usage
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.docker.docker_commands import create_argv
from jlremote.place.runtimes.docker.docker_errors import JustCreated, creation_error, old_tool
from jlremote.place.runtimes.engine.engine_errors import EngineNotRunning
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, PODMAN, Engine
from jlremote.place.runtimes.engine_containers import Containers, read_container
from jlremote.place.runtimes.runtime import ContainerSpec
from jlremote.place.runtimes.table import for_container

INSPECTED: dict[str, Any] = {
    "Id": "ada" + "0" * 61,
    "Name": "/cont1",
    "State": {"Running": True, "Paused": False, "StartedAt": "2026-01-01T00:00:00Z"},
    "Config": {"Image": "torch", "Labels": None},
    "HostConfig": {"NetworkMode": "default", "DeviceRequests": None},
    "NetworkSettings": {"Networks": {"bridge": {"IPAddress": "172.17.0.3"}}},
}
SPEC = ContainerSpec("cont1", "torch")


def said(*lines: str, status: int = 1) -> Completed:
    return Completed(status, "", "\n".join(lines) + "\n")


def inspected(**changes: Any) -> dict[str, Completed]:
    return {"container": Completed(0, json.dumps([INSPECTED | changes]), "")}


@pytest.mark.parametrize(
    ("request_", "shown", "engine"),
    [
        ({"Count": 2}, "2", "2"),
        ({"Count": -1}, "all", "all"),
        ({"DeviceIDs": ["2"]}, "2", "device=2"),
        ({"Count": 0, "DeviceIDs": ["0", "3"]}, "0,3", "device=0,3"),
        ({"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}, "all", "all"),
    ],
)
def test_a_count_of_gpus_is_not_taken_for_an_index(
    request_: dict[str, Any], shown: str, engine: str
) -> None:
    found = read_container(INSPECTED | {"HostConfig": {"DeviceRequests": [request_]}})
    assert (found.gpus, found.engine_gpus) == (shown, engine)


def test_a_container_that_is_known_by_its_id_may_have_another_name() -> None:
    runtime = for_container(Containers(DOCKER), "c0ffee")
    found = runtime.read("cont1", inspected(Name="/cont2"))
    assert found is not None
    assert (found.name, found.renamed, found.called) == ("cont1", "cont2", "cont2")
    assert " c0ffee " in runtime.inside("cont1", "true")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"Running": True, "Status": "running"}, ""),
        ({"Running": True, "Paused": True, "Status": "paused"}, "it is paused"),
        ({"Running": True, "Restarting": True, "Status": "restarting"}, "is restarting it"),
        ({"Status": "created"}, "it was never started"),
        ({"Status": "exited", "ExitCode": 0}, "it has ended (exit code 0)"),
        ({"Status": "exited", "ExitCode": 137}, "it was killed (exit code 137)"),
        (
            {"Status": "exited", "ExitCode": 137, "OOMKilled": True},
            "it was killed: out of memory (limit 300 MB)",
        ),
        ({}, ""),
    ],
)
def test_why_a_container_does_not_run_is_told_apart(state: dict[str, Any], why: str) -> None:
    host = {"NetworkMode": "default", "Memory": 300 << 20}
    found = read_container(INSPECTED | {"State": state, "HostConfig": host})
    assert found.halt.endswith(why)
    assert bool(found.halt) == bool(why)


def test_a_container_that_docker_found_by_the_beginning_of_its_id_is_another() -> None:
    assert Containers(DOCKER).read("ada", inspected()) is None


@pytest.mark.parametrize(
    ("lines", "kind", "words"),
    [
        (("invalid reference format",), Usage, "`torch`"),
        (('invalid argument "x" for "--gpus"', "", "Usage:", "Run 'docker create'"), Usage, '"x"'),
        (("Conflict. The name is already in use by container",), JustCreated, "another command"),
        (('could not select device driver "" with capabilities: [[gpu]]',), JlrError, "no GPUs"),
        (("driver failed: Bind for 0.0.0.0:80 failed: port is already allocated",), Busy, ":80"),
        (("write /x: no space left on device",), JlrError, "no space is left"),
        (("exec: sleep: permission denied",), JlrError, "cannot create the container"),
        (("Cannot connect to the Docker daemon",), EngineNotRunning, "does not run"),
        (("unknown flag: --gpus", "See 'docker create --help'."), JlrError, "older than 19.03"),
        (("Unknown runtime specified nvidia.",), JlrError, "no GPUs"),
        (("Error: unknown flag: --gpus", "See 'podman create --help'"), Usage, "--gpus"),
    ],
)
def test_each_refusal_to_create_has_its_error(
    lines: tuple[str, ...], kind: type[JlrError], words: str
) -> None:
    error = creation_error(DOCKER, SPEC, said(*lines), "dgx")
    assert type(error) is kind
    assert words in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize("value", ["--privileged", "$(id)", "a b", "'"])
def test_no_value_is_taken_for_an_option_of_docker(value: str) -> None:
    options = ContainerOptions((value,), (value,), value, value)
    argv = create_argv(DOCKER, ContainerSpec("cont1", value, options))
    assert argv[argv.index("--") + 1] == value
    assert argv.count(value) == 1
    for option in ("--volume", "--env", "--workdir", "--user"):
        assert f"{option}={value}" in argv[: argv.index("--")]


@pytest.mark.parametrize("name", ["x", "a" * 129])
def test_a_name_that_is_too_short_or_too_long_for_docker_is_refused(name: str) -> None:
    with pytest.raises(Usage, match="invalid name"):
        Containers(DOCKER).check_name(name)


def flags(options: ContainerOptions) -> tuple[str, ...]:
    """Return the options that the engine gets, without the labels."""
    argv = create_argv(DOCKER, ContainerSpec("cont1", "torch", options))
    return tuple(word for word in argv[: argv.index("--")] if not word.startswith("--label="))


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (ContainerOptions(init=False), "--init"),
        (ContainerOptions(ulimits=("memlock=-1", "memlock=")), "memlock"),
        (ContainerOptions(log_options=("max-size=",)), "--log"),
        (ContainerOptions(shm_size="1g", ipc="host"), "--shm-size"),
        (ContainerOptions(ipc=""), "--ipc"),
    ],
)
def test_an_option_that_was_taken_away_is_not_there(options: ContainerOptions, gone: str) -> None:
    assert not [word for word in flags(options) if gone in word]


def test_a_log_driver_of_ones_own_is_left_alone() -> None:
    options = ContainerOptions(engine_arguments=("--log-driver=journald",))
    assert [word for word in flags(options) if "log-" in word] == ["--log-driver=journald"]


OLD_API = '"--gpus" requires API version 1.40, but the Docker daemon API version is 1.39'
NO_DRIVER = (
    "Error response from daemon: could not select device driver "
    '"" with capabilities: [[gpu]]\nError: failed to start containers: x'
)


@pytest.mark.parametrize("engine", [DOCKER, ENGINES["sudo docker"]])
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("unknown flag: --gpus\nSee 'docker create --help'.", "knows no `--gpus`"),
        (OLD_API, "knows no `--gpus`"),
        (NO_DRIVER, "has no NVIDIA toolkit for its `--gpus`"),
    ],
)
def test_where_it_gives_no_gpus_the_old_tool_may(engine: Engine, said: str, why: str) -> None:
    tool = ENGINES[engine.name.replace("docker", "nvidia-docker")]
    assert old_tool(engine, Completed(125, "", said)) == (
        tool,
        f"`{engine.name}` on the host {why}",
    )


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (DOCKER, "no space left on device"),
        (PODMAN, "Error: unknown flag: --gpus"),
        (ENGINES["nvidia-docker"], "unknown runtime specified nvidia"),
    ],
)
def test_nothing_else_is_tried_for_other_reasons(engine: Engine, said: str) -> None:
    assert old_tool(engine, Completed(125, "", said)) is None
