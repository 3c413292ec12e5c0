"""The flags of a new container's options."""

from __future__ import annotations

import pytest

from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.docker.docker_commands import create_argv
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.runtime import ContainerSpec


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
