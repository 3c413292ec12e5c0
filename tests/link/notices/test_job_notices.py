"""The person is told when a waiting job begins, before its time limit, and once when it ends."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from jlremote.errors import JlrError
from jlremote.link import notices as module
from jlremote.link.notices import JobNotices, WatchedJob
from jlremote.place.host.contract import Completed, Steps
from jlremote.place.host.job import Job
from tests.link.fakes import until

WATCHED = WatchedJob("sweep", "sweep", "scheduled")
WAITS = Job("sweep", "waiting", "./sweep.sh")
RUNS = replace(WAITS, state="running", node="node1", since=100.0)
ENDED = replace(RUNS, state="ended", exit_code=3, ended=165.0)


class Desk:
    """The notices of jobs that are as the test says, one state a look."""

    name = "zih"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *states: Job | None) -> None:
        self.states = list(states)
        self.shown: list[tuple[str, str]] = []
        self.there = True
        self.losses = 1  # looks without a connection
        self.gone = False
        monkeypatch.setattr(module, "QUEUE_PAUSE_SECONDS", 0.01)
        monkeypatch.setattr(module, "_find", lambda *_: self.states.pop(0))
        self.notices = JobNotices(self.connected, self.show)
        self.notices.gone = lambda: setattr(self, "gone", True)

    def connected(self, _: float) -> Any:
        if self.losses:
            self.losses -= 1
            raise JlrError("no connection")
        return self

    def show(self, *told: str) -> bool:
        self.shown.append((told[0], told[1]))
        return self.there


def test_each_change_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    late = replace(RUNS, until=time.time() + 800)
    desk = Desk(monkeypatch, WAITS, WAITS, RUNS, late, late, ENDED)
    desk.notices.add(WATCHED)
    assert len(desk.notices) == 1
    until(lambda: desk.gone, "the end of its thread")
    begun, limit, ended = (text for _, text in desk.shown)
    assert begun == "the job has begun on node1: ./sweep.sh"
    assert limit == "its time limit ends it in 13m: ./sweep.sh"
    assert ended == "the job has ended with exit code 3 after 1m5s: ./sweep.sh"
    assert {title for title, _ in desk.shown} == {"zih/sweep"}
    assert not desk.notices.remove("sweep"), "its end was told"


def test_an_end_that_no_desktop_has_shown_is_left_to_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, ENDED)
    desk.there = False
    desk.notices.add(WATCHED)
    until(lambda: desk.gone, "the end of its thread")
    assert desk.notices.remove("sweep")
    assert not desk.notices.remove("sweep")


def test_a_job_that_was_deleted_is_not_watched_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, RUNS, None)
    desk.notices.add(WATCHED)
    until(lambda: desk.gone, "the end of its thread")
    assert desk.shown == []


def test_a_job_that_waits_for_gpus_is_watched_until_the_engine_has_it() -> None:
    waits = ["sweep", "./sweep.sh", "sweep", "auto", "", '{"place": 1}', "a7f3", "100\n"]
    record = "\x1f".join((*waits, "", "yes")) + "\x1e"
    labels = {"org.jlremote.job": "sweep", "org.jlremote.job-command": "./sweep.sh"}
    container = {
        "Id": "abc",
        "Name": "/sweep",
        "State": {"Status": "running"},
        "Config": {"Labels": labels},
    }
    host = ScriptHost(["", record, json.dumps([container])])
    watched = WatchedJob("sweep", "sweep", "docker")
    first, second = (module._find(host, watched) for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first.state, first.place, second.state, second.id) == ("waiting", 1, "running", "abc")


class ScriptHost:
    """A host that prints these answers, one after the other."""

    name = "dgx"

    def __init__(self, answers: list[str]) -> None:
        self._answers = answers

    def run(self, steps: Steps, *, timeout: float = 0, limit: int = 0) -> dict[str, Completed]:
        return {name: Completed(0, self._answers.pop(0), "") for name in steps}
