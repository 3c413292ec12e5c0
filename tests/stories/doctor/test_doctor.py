"""Parts of `jlr doctor` that need no host: trials and what is asked."""

from __future__ import annotations

from typing import Any, cast

from jlremote.doctor.doctor import _RecordingAsker
from jlremote.doctor.host_facts import HostFacts
from jlremote.doctor.trial import NOTHING, Trial
from jlremote.hosts.requests import StartRequest
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.runtimes.bare import Bare
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Runtime
from jlremote.questions import Question


def trial(runtime: Runtime, *, runs: bool = False, image: str | None = None) -> Trial:
    request = StartRequest("lab", "x", image=image)
    record = SessionRecord("lab", "cont1", "docker", 8888) if runs else None
    return Trial(cast("Any", None), HostFacts("lab"), runtime, record, NOTHING, request)


def test_without_containers_only_the_shell_must_work() -> None:
    assert trial(Bare()).ready == ("shell",)


def test_a_running_session_needs_no_image_and_no_disk() -> None:
    assert trial(Containers(DOCKER), runs=True, image="x").ready == ("permission",)
    assert trial(Containers(DOCKER)).ready == ("permission",)


def test_a_new_container_needs_its_image_and_room_for_it() -> None:
    needs = trial(Containers(DOCKER), image="x").ready
    assert set(needs) == {"permission", "disk", "image"}


def test_the_kind_of_the_last_question_is_remembered() -> None:
    class Answers:
        def ask(self, question: Question) -> str:
            return "yes"

    asker = _RecordingAsker(Answers())
    assert asker.last is None
    assert asker.ask(Question("host-key", "trust it?")) == "yes"
    assert asker.last == "host-key"
