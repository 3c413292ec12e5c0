"""A daemon that hangs is asked about only where a script may be waiting for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jlremote.errors import Busy
from jlremote.hosts.engines import expect_answer, searched
from jlremote.link.wire.states import LoginShell
from jlremote.place.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps
from jlremote.place.host.shell_text import TOOK_TOO_LONG, command_line
from jlremote.place.runtimes.engine.engine_errors import EngineSilent, tried
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, PODMAN, Engine
from tests.place.host.shells import through


class Hung:
    """A host on which each command takes too long, or fails with a status."""

    name = "dgx"

    def __init__(self, status: int = TOOK_TOO_LONG) -> None:
        self.status = status
        self.asked: list[str] = []

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        self.asked += steps.values()
        return {name: Completed(self.status, "", "") for name in steps}


@pytest.mark.parametrize("engine", [DOCKER, ENGINES["sudo docker"]])
def test_an_engine_that_a_silent_script_waits_for_is_asked_about(engine: Engine) -> None:
    host = Hung()
    with pytest.raises(EngineSilent, match=f"`{engine.name}` on the host does not answer"):
        expect_answer(host, command_line(engine("inspect", "cont1")))
    assert command_line(engine("ps")) in host.asked[0]


class RealShell:
    """A host whose `docker` takes too long each time, at which it is not waited for."""

    name = "dgx"

    def __init__(self, folder: Path) -> None:
        self.asked = folder / "asked"
        self.programs = folder
        asks = f'echo "$*" >>{self.asked}; exit {TOOK_TOO_LONG}'
        for name, body in (
            ("timeout", asks),
            ("docker", "echo Docker version 28"),
            ("podman", ""),
            ("id", "echo sudo"),
        ):
            program = folder / name
            program.write_text(f"#!/bin/sh\n{body}\n")
            program.chmod(0o755)

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        return through("sh", steps, before=f"PATH={self.programs}:$PATH")

    def login_shell(self) -> tuple[LoginShell, bool]:
        raise AssertionError("an engine that does not answer is there")


def test_a_daemon_that_hangs_is_not_asked_again_behind_sudo(tmp_path: Path) -> None:
    host = RealShell(tmp_path)
    assert searched(host, sudo=False).engine is None
    asked = [line.split()[:2] for line in host.asked.read_text().splitlines()]
    assert asked == [["10", "docker"], ["3", "podman"]]


@pytest.mark.parametrize("status", [0, 1, 127])
def test_a_script_may_take_its_time_on_an_engine_that_answers(status: int) -> None:
    host = Hung(status)
    expect_answer(host, command_line(DOCKER("commit", "cont1", "saved")))
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    "script", ["sleep 60", tried(DOCKER("ps")), command_line(PODMAN("inspect", "cont1"))]
)
def test_a_script_without_a_daemon_or_with_a_limit_of_its_own_is_left_alone(script: str) -> None:
    host = Hung()
    expect_answer(host, script)
    assert host.asked == []


def test_a_server_with_no_session_to_spare_fails_no_script_that_waits() -> None:
    class Narrow(Hung):
        def run(self, *_: object, **__: object) -> dict[str, Completed]:
            raise Busy("the server opens no more sessions on this connection")

    expect_answer(Narrow(), command_line(DOCKER("inspect", "cont1")))
