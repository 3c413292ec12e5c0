"""Long cells and dead kernels are told once, also what came in a silence, and nothing older."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import LinkLost
from jlremote.link import notices as module
from jlremote.link.notices import CellNews, CellNotices
from jlremote.output import recorded_files
from jlremote.output.recorded_files import Record
from jlremote.place.runtimes.place import Place
from jlremote.ssh.interfaces import Output
from tests.link.fakes import FakeConnection, until


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
        """Whether that many scripts have looked at everything."""
        return self._whole >= scripts

    def cut(self) -> None:
        assert self.running is not None
        assert self.running.stdin is not None
        self.running.stdin.close()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the records of a session that runs here."""
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
