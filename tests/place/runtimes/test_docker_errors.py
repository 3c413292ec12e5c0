"""Other ways to create a container, by docker's refusals and the options that it lists."""

from __future__ import annotations

import pytest

from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.docker.docker_errors import (
    OtherWay,
    foreseen_way,
    option_steps,
    other_way,
)
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, PODMAN, Engine

GONE = Completed(1, "", "")
THERE = Completed(0, "/usr/bin/nvidia-docker\n", "")
OLD_API = '"--gpus" requires API version 1.40, but the Docker daemon API version is 1.39'
NO_DRIVER = (
    "Error response from daemon: could not select device driver "
    '"" with capabilities: [[gpu]]\nError: failed to start containers: x'
)


def refused(words: str) -> Completed:
    return Completed(125, "", words)


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
    assert other_way(engine, refused(said)) == OtherWay(tool, f"`{engine.name}` on the host {why}")


def test_where_it_may_pull_the_image_is_looked_for_before() -> None:
    other = other_way(DOCKER, refused("unknown flag: --pull\nSee 'docker create --help'."))
    assert other is not None
    assert (other.engine.name, other.engine.kind.pulls_never, other.why) == ("docker", False, None)
    # The next refusal of the same client leads on.
    again = other_way(other.engine, refused("unknown flag: --gpus"))
    assert again is not None
    assert again.engine.name == "nvidia-docker"


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (DOCKER, "no space left on device"),
        (PODMAN, "Error: unknown flag: --gpus"),
        (ENGINES["nvidia-docker"], "unknown runtime specified nvidia"),
    ],
)
def test_nothing_else_is_tried_for_other_reasons(engine: Engine, said: str) -> None:
    assert other_way(engine, refused(said)) is None


@pytest.mark.parametrize(
    ("options", "tool", "gpus", "name", "pulls_never"),
    [
        ("--gpus --pull", THERE, True, "docker", True),
        ("--pull", THERE, True, "nvidia-docker", False),
        ("--pull", THERE, False, "docker", True),
        ("--pull", GONE, True, "docker", True),
        ("", THERE, False, "docker", False),
        ("", GONE, True, "docker", False),
    ],
)
def test_its_options_tell_beforehand(
    options: str, tool: Completed, gpus: bool, name: str, pulls_never: bool
) -> None:
    told = dict(zip(option_steps(DOCKER), (Completed(0, options, ""), tool), strict=True))
    engine = foreseen_way(DOCKER, told, gpus=gpus).engine
    assert (engine.name, engine.kind.pulls_never) == (name, pulls_never)


def test_an_engine_that_did_not_answer_is_used_as_it_is() -> None:
    assert option_steps(PODMAN) == {}
    assert foreseen_way(PODMAN, {}, gpus=True) == OtherWay(PODMAN)
    silent = dict.fromkeys(option_steps(DOCKER), GONE)
    assert foreseen_way(DOCKER, silent, gpus=True) == OtherWay(DOCKER)
