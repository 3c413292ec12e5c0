"""Long cells, dead kernels and the changes of jobs are told once, also what came in a silence."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import JlrError, LinkLost
from jlremote.link import notices as module
from jlremote.link.notices import CellNews, CellNotices, JobNotices, WatchedJob
from jlremote.output import recorded_files
from jlremote.output.recorded_files import Record
from jlremote.place.host.contract import Completed
from jlremote.place.host.job import Job
from jlremote.place.runtimes.place import Place
from jlremote.ssh.channels.session_channel import Output
from tests.link.fakes import FakeConnection, ScriptHost, until


def record(kind: str, time: float, request: str | None = "r1", **content: Any) -> Record:
    return Record(time, "k1", kind, "work/train.ipynb", None, request, content)


def test_only_long_cells_and_dead_kernels_are_news() -> None:
    news = CellNews()
    told = [
        news.take(record("code", 1.0, "old", execution_count=1)),
        news.take(record("end", 99.0, "old", status="ok")),
        news.take(record("code", 100.0, execution_count=7)),
        news.take(None),
        news.take(record("end", 159.0, "old", status="ok")),
        news.take(record("end", 165.5, status="error")),
        news.take(record("kernel", 170.0, None, state="restarted")),
    ]
    error = "cell [7] of work/train.ipynb has ended with an error after 1m5s"
    assert told == [None, None, None, None, None, error, None]
    assert news.take(record("kernel", 180.0, None, state="died")) == (
        "the kernel of work/train.ipynb has died"
    )
    assert news.take(record("kernel", 180.0, None, state="died")) is None, "read again"


class ShellConnection(FakeConnection):
    """A connection whose scripts run here; `cut` ends one, as a loss of the connection does."""

    def __init__(self) -> None:
        super().__init__()
        self.running: subprocess.Popen[bytes] | None = None
        self.read = b""
        self._scripts = 0
        self._whole = 0  # scripts of which a look has come whole

    def run_preemptible(self, script: bytes, output: Output) -> bool:
        self.running = subprocess.Popen(("sh", "-s"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.running.stdin is not None
        self.running.stdin.write(script)
        self.running.stdin.flush()
        self._scripts += 1
        with self.running as running:
            assert running.stdout is not None
            while data := os.read(running.stdout.fileno(), 1 << 16):
                self.read += data
                output("stdout", data)
                if data.endswith(b"\x1e\n"):
                    self._whole = self._scripts
        raise LinkLost("the connection broke")

    def looks(self, scripts: int) -> bool:
        return self._whole >= scripts

    def cut(self) -> None:
        assert self.running is not None
        assert self.running.stdin is not None
        self.running.stdin.close()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(recorded_files, "NEWS_SECONDS", 0.1)
    folder = tmp_path / "jlr/servers" / os.uname().nodename / "cont1/output"
    folder.mkdir(parents=True)
    return folder / "k1.jsonl"


def write(file: Path, *told: Record) -> None:
    with file.open("a") as records:
        for one in told:
            records.write(json.dumps(vars(one), separators=(",", ":")) + "\n")


@pytest.mark.lab  # it takes seconds
def test_a_session_is_read_by_the_shell_across_a_loss_of_the_connection(file: Path) -> None:
    before = set(threading.enumerate())
    shown: list[tuple[str, str]] = []
    connection, places = ShellConnection(), [Place("none", "cont1", "", "")]
    notices = CellNotices(
        lambda _: connection,
        lambda _: places[0] if places else None,
        lambda *told: shown.append(told),
    )
    write(file, record("code", 0.0, "old"), record("end", 99.0, "old", status="ok"))
    write(file, record("code", 100.0, execution_count=3), record("stream", 101.0, text="x" * 9999))
    for wanted in (True, False, True, True):
        notices.set("cont1", wanted=wanted)
    until(lambda: connection.looks(1), "the first look")
    connection.cut()
    write(file, record("end", 300.0, status="ok"))
    until(lambda: len(shown) == 1, "the cell's end")
    write(file, record("kernel", 310.0, None, state="died"))
    until(lambda: len(shown) == 2, "the kernel's death")
    connection.cut()
    until(lambda: connection.looks(2), "a look after the loss")
    assert shown == [
        ("cont1", "cell [3] of work/train.ipynb has ended after 3m20s"),
        ("cont1", "the kernel of work/train.ipynb has died"),
    ]
    assert b"x" * 9999 not in connection.read
    places.clear()
    connection.cut()
    until(lambda: not set(threading.enumerate()) - before, "the end of its thread")


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
    answers = ["", record, json.dumps([container])]
    host = ScriptHost(lambda _: Completed(0, answers.pop(0), ""))
    watched = WatchedJob("sweep", "sweep", "docker")
    first, second = (module._find(host, watched) for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first.state, first.place, second.state, second.id) == ("waiting", 1, "running", "abc")
