"""A daemon that hangs is asked about only where a script may be waiting for it."""

from __future__ import annotations

import pytest

from jlremote.errors import Busy
from jlremote.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps
from jlremote.host.shell_text import TOOK_TOO_LONG, command_line
from jlremote.runtimes.engine.engine import DOCKER, ENGINES, PODMAN, Engine
from jlremote.runtimes.engine.engine_errors import EngineSilent, tried
from jlremote.workflow.host.engines import expect_answer


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
