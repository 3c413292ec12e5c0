"""The flags of a new container's options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.docker.docker_commands import create_argv
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.runtime import ContainerSpec
from jlremote.place.runtimes.scripts.waiting import command


def flags(options: ContainerOptions) -> tuple[str, ...]:
    """Return the options that the engine gets, without the labels."""
    argv = create_argv(DOCKER, ContainerSpec("cont1", "torch", options))
    return tuple(word for word in argv[: argv.index("--")] if not word.startswith("--label="))


def test_every_option_becomes_a_flag() -> None:
    options = ContainerOptions(
        volumes=("/raid/me:/data:ro", "cache:/cache"),
        environment=("A=1",),
        workdir="/data",
        user="1000:1000",
        shm_size="1g",
        ulimits=("memlock=-1", "stack=67108864"),
        ipc="private",
        network="lab",
        remove=True,
        log_options=("max-file=3",),
        engine_arguments=("--cap-add", "SYS_PTRACE"),
    )
    assert flags(options)[3:] == (
        *("--name=cont1", "--init", "--rm", "--volume=/raid/me:/data:ro", "--volume=cache:/cache"),
        *("--env=A=1", "--workdir=/data", "--user=1000:1000", "--shm-size=1g"),
        *("--ulimit=memlock=-1", "--ulimit=stack=67108864", "--ipc=private", "--network=lab"),
        *("--log-driver=json-file", "--log-opt=max-size=50m", "--log-opt=max-file=3"),
        *("--cap-add", "SYS_PTRACE"),
    )


def test_nothing_asked_is_an_init_and_a_bounded_log() -> None:
    assert flags(ContainerOptions())[3:] == (
        *("--name=cont1", "--init", "--log-driver=json-file", "--log-opt=max-size=50m"),
    )


def test_the_images_entrypoint_is_given_our_command_or_left_out() -> None:
    spec = ContainerSpec("cont1", "torch", script="echo\n")
    own, without = (
        create_argv(DOCKER, replace(spec, own_entrypoint=kept)) for kept in (True, False)
    )
    assert own[own.index("--") :] == ("--", "torch", *command("echo\n"))
    assert "--entrypoint=sh" in without
    assert without[without.index("--") :] == ("--", "torch", *command("echo\n")[1:])


def test_packages_are_noted_on_the_container() -> None:
    argv = create_argv(DOCKER, ContainerSpec("c", "i", ContainerOptions(packages=("a>=1", "b"))))
    assert """--label=org.jlremote.packages='a>=1' b""" in argv


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


def test_the_last_value_of_a_limit_counts() -> None:
    options = ContainerOptions(log_options=("max-size=1m",))
    assert [word for word in flags(options) if "max-size" in word] == ["--log-opt=max-size=1m"]


def test_a_log_driver_of_ones_own_is_left_alone() -> None:
    options = ContainerOptions(engine_arguments=("--log-driver=journald",))
    assert [word for word in flags(options) if "log-" in word] == ["--log-driver=journald"]
