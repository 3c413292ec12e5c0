"""NVIDIA's old tool in the place of docker, by docker's refusals."""

from __future__ import annotations

import pytest

from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.docker.docker_errors import old_tool
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, PODMAN, Engine

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
    assert old_tool(engine, refused(said)) == (tool, f"`{engine.name}` on the host {why}")


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (DOCKER, "no space left on device"),
        (PODMAN, "Error: unknown flag: --gpus"),
        (ENGINES["nvidia-docker"], "unknown runtime specified nvidia"),
    ],
)
def test_nothing_else_is_tried_for_other_reasons(engine: Engine, said: str) -> None:
    assert old_tool(engine, refused(said)) is None
