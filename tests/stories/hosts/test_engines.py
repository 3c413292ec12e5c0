"""The choice of a container engine, and an engine that does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from jlremote.errors import Busy, JlrError
from jlremote.hosts.engines import expect_answer, searched, surveyed, usable, used_on
from jlremote.hosts.requests import StartRequest
from jlremote.laptop import job_records, sessions
from jlremote.laptop.job_records import JobRecord
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.wire.states import LoginShell
from jlremote.place.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps
from jlremote.place.host.shell_text import TOOK_TOO_LONG, command_line
from jlremote.place.runtimes.engine.engine_errors import (
    EngineNotRunning,
    EngineSilent,
    EngineUnusable,
    tried,
)
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, PODMAN, Engine
from jlremote.place.runtimes.table import runtime_named
from tests.outages.parts import within
from tests.place.host.shells import through
from tests.stories.parts import FakeHost, context

WORKS = Completed(0, "", "")
MISSING = Completed(127, "", "sh: docker: not found\n")
STOPPED = Completed(1, "", "Cannot connect to the Docker daemon. Is it running?\n")
LOCKED = Completed(1, "", "sudo: a password is required\n")
SKIPPED = Completed(1, "", "")


def host(docker: Completed, podman: Completed, *behind_sudo: Completed) -> FakeHost:
    trials = (docker, podman, *behind_sudo, SKIPPED, SKIPPED)
    names = ("docker", "podman", "sudo-docker", "sudo-podman")
    return FakeHost("dgx", dict(zip(names, trials, strict=False)))


def test_an_engine_whose_sudo_wants_a_password_is_the_last_resort() -> None:
    locked = host(MISSING, MISSING, LOCKED)
    assert usable(locked, sudo=False) is ENGINES["sudo docker"]
    with pytest.raises(EngineUnusable):
        usable(locked, sudo=False, may_ask=False)


def test_the_likeliest_failure_is_that_of_an_installed_engine() -> None:
    with pytest.raises(EngineNotRunning):
        usable(host(MISSING, STOPPED), sudo=False)
    known = EngineNotRunning("the daemon does not run")
    with pytest.raises(JlrError) as caught:
        usable(host(MISSING, MISSING), sudo=False, reason=known)
    assert caught.value is known


def test_the_engines_of_a_host_are_those_of_its_sessions_and_jobs() -> None:
    sessions.save(SessionRecord("dgx", "old", "podman", 8888, last_used=1.0))
    sessions.save(SessionRecord("dgx", "bare", "none", 8889, last_used=3.0))
    sessions.save(SessionRecord("dgx", "new", "sudo docker", 8890, last_used=2.0))
    sessions.save(SessionRecord("lab", "other", "docker", 8891))
    job_records.save(JobRecord("dgx", "job", "docker", None))
    assert [engine.name for engine in used_on("dgx")] == ["sudo docker", "podman", "docker"]


@within(5)
def test_a_recorded_session_waits_for_its_engine_instead_of_moving_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Podman would find no such container, and the record would lead to a new, empty one."""
    sessions.save(SessionRecord("dgx", "cont1", "docker", 8888))
    there = host(STOPPED, WORKS)
    there.answers |= {"container": STOPPED, "inside": SKIPPED, "called": SKIPPED}
    request, docker = StartRequest("dgx", "cont1"), runtime_named("docker")
    with pytest.raises(EngineNotRunning, match="`docker` daemon does not run"):
        surveyed(there, docker, "cont1", request, context())
    assert list(there.asked) == ["container", "inside", "called", "user"]


def test_a_login_shell_is_asked_only_where_no_engine_works() -> None:
    asked = []

    class Host(FakeHost):
        def login_shell(self) -> tuple[LoginShell, bool]:
            asked.append(self.name)
            self.answers["docker"] = WORKS
            return LoginShell("/bin/bash", finds=("/opt/docker",)), True

    trials: dict[str, Completed | str] = {
        "docker": MISSING,
        "podman": WORKS,
        "sudo-docker": SKIPPED,
        "sudo-podman": SKIPPED,
    }
    assert usable(Host("dgx", dict(trials)), sudo=False) is ENGINES["podman"]
    assert asked == []
    assert usable(Host("dgx", trials | {"podman": MISSING}), sudo=False) is DOCKER
    assert asked == ["dgx"]


def test_without_an_answer_of_a_login_shell_it_cannot_be_told_whether_there_is_an_engine() -> None:
    silent = host(MISSING, MISSING)
    silent.login = LoginShell("/bin/bash", trouble="its login shell did not answer"), False
    with pytest.raises(EngineUnusable, match="cannot tell whether the host has docker or podman"):
        usable(silent, sudo=False)
    # A daemon that was found and does not run is the likelier reason.
    with pytest.raises(EngineNotRunning):
        usable(host(STOPPED, MISSING), sudo=False)


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
