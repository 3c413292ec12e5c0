"""The recorder's program beside a real kernel, with a process that stands for the server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from jlremote.jupyter import recorder
from jlremote.remote import sending
from jlremote.remote.record_store import Store
from jlremote.remote.recorded_kernel import RecordedServer
from tests.forward.parts import read_all, serving
from tests.lab.programs import PATIENCE, wait_until

MOST = 400_000
KERNEL = "7f0c"

pytestmark = pytest.mark.lab


class Recorded:
    """A session's folder with a server's runtime folder, and what is recorded there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = subprocess.Popen(["sleep", "300"])
        self.runtime = folder / "runtime"
        self.runtime.mkdir()
        facts = {"port": 9, "base_url": "/", "token": ""}  # nothing listens there
        file = self.runtime / f"jpserver-{self.server.pid}.json"
        file.write_text(json.dumps(facts))

    @contextmanager
    def recorder(self, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        program = self.folder / recorder.PROGRAM_FILE
        program.write_text(sending.program(recorder.PROGRAM))
        folders = str(self.runtime), str(self.folder)
        argv = (sys.executable, str(program), str(self.server.pid), *folders, *more)
        with subprocess.Popen(argv) as running:
            try:
                wait_until((self.folder / "recorder").exists, "the recorder's start")
                yield running
            finally:
                running.kill()

    @property
    def records(self) -> list[dict[str, Any]]:
        pieces = sorted(
            self.folder.glob("output/*.jsonl"),
            key=lambda path: int((path.suffixes[:-1] or [".999999"])[0][1:]),
        )
        try:  # while the recorder writes, and deletes the oldest
            whole = [path.read_text().rpartition("\n")[0] for path in pieces]
        except FileNotFoundError:
            return self.records
        return [json.loads(line) for text in whole for line in text.splitlines()]

    def kinds(self, request: str) -> list[str]:
        return [one["kind"] for one in self.records if one["request"] == request]

    def states(self) -> list[str]:
        return [one["content"]["state"] for one in self.records if one["kind"] == "kernel"]


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    made = Recorded(tmp_path)
    yield made
    made.server.kill()
    made.server.wait()


@contextmanager
def kernel(recorded: Recorded) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """Run a real kernel whose connection file is the server's."""
    manager = KernelManager(connection_file=str(recorded.runtime / f"kernel-{KERNEL}.json"))
    manager.start_kernel(stderr=subprocess.DEVNULL)
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_oldest_records_go_first_and_that_is_recorded(recorded: Recorded) -> None:
    with recorded.recorder(str(MOST)), kernel(recorded) as (_, client):
        text = "x" * 100
        code = f"for i in range(20000): print(i, '{text}', flush=i % 100 == 0)"
        request = client.execute(code)
        wait_until(lambda: "end" in recorded.kinds(request), "the cell's end", timeout=120)
        sizes = [path.stat().st_size for path in recorded.folder.glob("output/*.jsonl")]
        assert MOST / 2 < sum(sizes) <= MOST
        lost = [one["content"] for one in recorded.records if one["kind"] == "lost"]
        assert lost
        assert all(one["from"] <= one["until"] for one in lost)
        assert all("were recorded" in one["why"] for one in lost)
        mine = [one for one in recorded.records if one["request"] == request]
        texts = [one["content"]["text"] for one in mine if one["kind"] == "stream"]
        kept = [int(line.split()[0]) for line in "".join(texts).splitlines()]
        assert kept == list(range(kept[0], 20000))  # without a hole, and up to the end


def test_of_a_text_that_is_longer_than_all_that_is_kept_the_end_is_kept(recorded: Recorded) -> None:
    with recorded.recorder(str(MOST)), kernel(recorded) as (_, client):
        request = client.execute(f"print('x' * {2 * MOST} + 'end')")
        wait_until(lambda: "end" in recorded.kinds(request), "the cell's end", timeout=120)
        told = [one["content"] for one in recorded.records if one["request"] == request]
    text = "".join(content.get("text", "") for content in told)
    assert text.endswith("xend\n")
    assert MOST / 2 < len(text) <= MOST
    assert [content["why"] for content in told if "why" in content]


CAUGHT = """\
from comm import create_comm
log = create_comm()
for request in (get_ipython().kernel.get_parent()["header"]["msg_id"], ""):
    log.send({"method": "update", "state": {"msg_id": request}})
    print(log.comm_id if request else "of the cell", flush=True)"""


def test_a_kernel_that_restarts_or_dies_is_recorded_and_the_recorder_ends_with_the_server(
    recorded: Recorded,
) -> None:
    with recorded.recorder() as running, kernel(recorded) as (manager, client):
        wait_until(lambda: recorded.states() == ["started"], "the record of the start")
        failing = client.execute("1 / 0")
        wait_until(lambda: "end" in recorded.kinds(failing), "the cell's end")
        assert recorded.kinds(failing) == ["code", "error", "end"]
        assert recorded.records[-1]["content"] == {"status": "error"}
        caught = client.execute(CAUGHT)  # as an Output widget of ipywidgets does
        wait_until(lambda: "end" in recorded.kinds(caught), "the cell's end")
        of_widget, of_cell = (one for one in recorded.records[-3:] if one["kind"] == "stream")
        assert f"{of_widget['widget']}\n" == of_widget["content"]["text"]
        assert "widget" not in of_cell
        manager.restart_kernel()
        client.wait_for_ready(timeout=60)
        wait_until(lambda: recorded.states()[-1] == "restarted", "the record of the restart")
        client.execute("import time; time.sleep(60)")
        runs = recorded.folder / "output/running"
        wait_until(lambda: runs.exists() and KERNEL in runs.read_text(), "the note of what runs")
        manager.shutdown_kernel(now=True)
        wait_until(lambda: recorded.states()[-1] == "died", "the record of the death")
        recorded.server.kill()
        recorded.server.wait()
        assert running.wait(PATIENCE) == 0
    left = {path.name for path in recorded.folder.glob("output/*")}
    assert left == {f"{KERNEL}.jsonl", "root"}
    assert not (recorded.folder / "recorder").exists()


def test_a_server_has_one_recorder(recorded: Recorded) -> None:
    with recorded.recorder() as first, recorded.recorder() as second:
        assert second.wait(PATIENCE) == 0
        assert first.poll() is None


def test_a_small_piece_goes_with_the_one_after_it(tmp_path: Path) -> None:
    store = Store(str(tmp_path), MOST)
    for number in range(8000):
        store.add({"time": float(number), "kernel": KERNEL, "kind": "stream", "text": "x" * 80})
        if number in (0, 7999) or number % 150 == 0:
            store.write()
    lines = [
        json.loads(line)
        for path in tmp_path.iterdir()
        for line in path.read_text().split("\n")[:-1]
    ]
    kept = sorted(int(one["time"]) for one in lines if one["kind"] == "stream")
    assert 0 < kept[0] < 7000
    assert kept == list(range(kept[0], 8000))


# Sends what is signed and no message, on the kernel's own iopub socket.
HOSTILE_KERNEL = """
import json
session, socket = get_ipython().kernel.session, get_ipython().kernel.iopub_socket
def send(*parts):
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in parts]
    socket.send_multipart([b"x", b"<IDS|MSG>", session.sign(parts), *parts])
stream, asked = {"msg_type": "stream"}, {"msg_id": "r", "msg_type": "execute_request"}
deep = b"[" * 900 + b"]" * 900
def nested(name):
    return b'{"name": "stdout", "%s": ' % name + deep + b"}"
send(*[b"[" * 200_000] * 4)
send(*[b"9" * 10_000] * 4)
send(stream, asked, {}, b"[" * 200_000)
send(stream, asked, {}, nested(b"text"))
send(stream, nested(b"msg_id"), {}, {"name": "stdout", "text": "a"})
send(stream, {"msg_id": ["r"], "msg_type": {}}, {}, {"name": "stdout", "text": "b"})
send(stream, asked, {}, {"name": 7, "text": None})
send({"msg_type": ["status"]}, asked, {}, [])
send({"msg_type": "status"}, asked, {}, {"execution_state": {}})
send({"msg_type": "display_data"}, asked, {}, b'{"data": 1e999, "metadata": "\\\\ud800"}')
send([], [], [], [])
send()
socket.send_multipart([b""])
socket.send_multipart([b"<IDS|MSG>"])
"""
HOSTILE_FILES = {
    "deep": "[" * 200_000,
    "digits": "9" * 10_000,
    "transport": '{"transport": "x", "ip": "1", "iopub_port": 1, "key": ""}',
    "address": '{"transport": "tcp", "ip": "::\\ud800", "iopub_port": -1, "key": "\\ud800"}',
    "curve": '{"transport": "tcp", "ip": "127.0.0.1", "iopub_port": 9, "key": "",'
    ' "curve_publickey": "short", "curve_secretkey": "short"}',
}


def test_a_hostile_kernel_or_file_does_not_end_the_recorder(recorded: Recorded) -> None:
    for name, text in HOSTILE_FILES.items():
        (recorded.runtime / f"kernel-{name}.json").write_text(text)
    with recorded.recorder() as running, kernel(recorded) as (_, client):
        client.execute(HOSTILE_KERNEL)
        last = client.execute("print('still recorded')")
        wait_until(lambda: "end" in recorded.kinds(last), "the cell's end")
        assert running.poll() is None
        text = "".join(
            one["content"].get("text", "") for one in recorded.records if one["request"] == last
        )
        assert text == "still recorded\n"


def test_who_has_taken_the_port_of_a_server_that_ended_gets_no_token() -> None:
    heard: list[bytes] = []
    with (
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process,
        serving(lambda sock: heard.append(read_all(sock))) as taker,
    ):
        server = RecordedServer(process.pid, "/nonexistent")
        server.facts = {"port": taker.port, "token": "t", "base_url": "/"}
        process.communicate()
        server.learn()
        wait_until(lambda: heard == [b""], "a connection without a byte")
