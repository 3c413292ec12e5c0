"""Parts of `jlr doctor` that need no host: clocks, trials and what is asked."""

from __future__ import annotations

from typing import Any, cast

import pytest

from jlremote.doctor.doctor import _RecordingAsker, _skew
from jlremote.doctor.host_facts import HostFacts
from jlremote.doctor.trial import RunningSession, Trial
from jlremote.hosts.requests import StartRequest
from jlremote.place.runtimes.bare import Bare
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Runtime
from jlremote.questions import Question


@pytest.mark.parametrize(
    ("told", "skew"),
    [
        ("100", 0.0),
        ("101", 0.0),
        ("99", 0.0),
        ("160", 59.0),
        ("40", -60.0),
        ("", None),
        ("x", None),
    ],
)
def test_a_clock_is_only_off_by_more_than_the_round_trip(told: str, skew: float | None) -> None:
    assert _skew(told, 100.0, 101.0) == skew


def trial(runtime: Runtime, running: object = None, image: str | None = None) -> Trial:
    request = StartRequest("lab", "x", image=image)
    here = cast("RunningSession | None", running)
    return Trial(cast("Any", None), HostFacts("lab"), runtime, here, request)


def test_without_containers_only_the_shell_must_work() -> None:
    assert trial(Bare()).ready == ("shell",)


def test_a_running_session_needs_no_image_and_no_disk() -> None:
    assert trial(Containers(DOCKER), running=object(), image="x").ready == ("permission",)
    assert trial(Containers(DOCKER)).ready == ("permission",)


def test_a_new_container_needs_its_image_and_room_for_it() -> None:
    needs = trial(Containers(DOCKER), image="x").ready
    assert set(needs) == {"permission", "disk", "image", "architecture"}


def test_the_kind_of_the_last_question_is_remembered() -> None:
    class Answers:
        def ask(self, question: Question) -> str:
            return "yes"

    asker = _RecordingAsker(Answers())
    assert asker.last is None
    assert asker.ask(Question("host-key", "trust it?")) == "yes"
    assert asker.last == "host-key"
