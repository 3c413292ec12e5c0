"""A local socket joined with a far end in memory: bytes, ends, resets and full buffers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.forward.socket_bridge import SocketBridge
from tests.lab.programs import PATIENCE


class FarEnd:
    """Keeps what it is sent; has room for `space` bytes."""

    reader = None

    def __init__(self) -> None:
        self.space = 1 << 20
        self.sent = b""
        self.ended = False
        self.closed = False
        self.passed_on = 0

    def room(self) -> int:
        return self.space - len(self.sent)

    def send(self, data: memoryview) -> None:
        assert len(data) <= self.room()
        self.sent += bytes(data)

    def send_end(self) -> None:
        self.ended = True

    def consumed(self, count: int) -> None:
        self.passed_on += count

    def close(self) -> None:
        self.closed = True


class Owner:
    """Notes what becomes of a bridge."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def accepted(self, _bridge: SocketBridge) -> bool:
        self.events.append("accepted")
        return True

    def refused(self, _bridge: SocketBridge, reason: str) -> None:
        self.events.append(f"refused: {reason}")

    def failed(self, _bridge: SocketBridge) -> None:
        self.events.append("failed")

    def finished(self, _bridge: SocketBridge) -> None:
        self.events.append("finished")


class Desk:
    """A bridge between `local` and `far`, whose loop runs in the test's thread."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.local, accepted = socket.socketpair()
        self.local.settimeout(PATIENCE)
        accepted.setblocking(False)
        self.far, self.owner = FarEnd(), Owner()
        self.bridge = SocketBridge(accepted, self.loop, self.owner)
        self.bridge.join(self.far)

    def turn(self, times: int = 3) -> None:
        """Let the loop handle what is there."""
        for _ in range(times):
            self.loop.call(lambda: None)
            self.loop._turn()

    def open(self) -> Desk:
        self.bridge.opened()
        self.turn()
        return self


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.bridge.close()
    made.local.close()
    made.loop.close()


def test_a_lost_connection_is_tried_again_only_before_the_first_byte(desk: Desk) -> None:
    desk.bridge.lost()
    desk.turn()
    assert desk.owner.events == ["failed"]
    other = FarEnd()
    desk.bridge.join(other)
    desk.open()
    desk.bridge.lost()
    desk.turn()
    assert desk.owner.events == ["failed", "accepted", "finished"]
    assert other.closed


@pytest.mark.parametrize(
    "event",
    [
        lambda bridge: bridge.opened(),
        lambda bridge: bridge.refused("late"),
        lambda bridge: bridge.ended(),
        lambda bridge: bridge.writable(),
        lambda bridge: bridge.closed(),
        lambda bridge: bridge.lost(),
        lambda bridge: bridge.close(),
        lambda bridge: bridge.abort(),
    ],
)
def test_events_after_the_end_change_nothing(desk: Desk, event: Callable[[Any], None]) -> None:
    desk.open()
    desk.bridge.close()
    event(desk.bridge)
    assert desk.bridge.received(memoryview(b"late")) == 4
    desk.turn()
    assert desk.owner.events == ["accepted", "finished"]


GET = b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("before", [b"", b"POST / HTTP/1.1\r\n\r\n"])
def test_a_get_without_an_answer_is_asked_again_on_the_next_connection(
    desk: Desk, before: bytes
) -> None:
    desk.open()
    if before:
        desk.local.send(before)
        desk.turn()
        desk.bridge.received(memoryview(b"HTTP/1.1 200 OK\r\n\r\n"))
        desk.local.recv(100)
    desk.local.send(GET)
    desk.turn()
    desk.bridge.lost()
    desk.turn()
    assert desk.owner.events[-1] == "failed"
    desk.local.send(b"more")
    desk.far = FarEnd()
    desk.bridge.join(desk.far)
    desk.open()
    assert desk.far.sent == GET + b"more"
    desk.bridge.received(memoryview(b"answer"))
    assert desk.local.recv(100) == b"answer"


def test_a_save_without_an_answer_is_sent_again_as_far_as_there_is_room(desk: Desk) -> None:
    body = b"x" * 300_000
    head = f"PUT /a HTTP/1.1\r\nSec-Fetch-Mode: cors\r\nContent-Length: {len(body)}\r\n\r\n"
    save = head.encode() + body
    desk.open()
    desk.local.sendall(save[:200_000])
    desk.turn(20)
    for room, said in ((50_000, 0), (100_000, 200_000), (1 << 20, 0)):
        desk.bridge.lost()
        desk.turn()
        assert desk.owner.events[-1] == "failed"
        desk.far = FarEnd()
        desk.far.space = room
        desk.bridge.join(desk.far)
        desk.open()
        desk.local.sendall(save[200_000 : 200_000 + said])
        assert desk.far.sent == save[: len(desk.far.sent)]
        desk.far.space = room + 50_000
        desk.bridge.writable()
        desk.turn(20)
        assert len(desk.far.sent) == min(room + 50_000, len(save))
    desk.bridge.received(memoryview(b"answer"))
    assert desk.local.recv(100) == b"answer"


UPGRADE = GET.replace(b"Host", b"Upgrade: websocket\r\nHost")


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (GET.replace(b"GET", b"POST"), b""),
        (GET[:-2], b""),
        (GET + b"beyond", b""),
        (GET, b"HTTP/1.1 200"),
        (UPGRADE, b""),
        (b"GET key\r\n\r\n", b""),
        (GET[:-4] + b"\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", b""),
    ],
)
def test_anything_else_that_is_lost_is_cut(desk: Desk, said: bytes, answer: bytes) -> None:
    desk.open()
    desk.local.send(said)
    desk.turn()
    if answer:
        desk.bridge.received(memoryview(answer))
        desk.local.recv(100)
    desk.bridge.lost()
    desk.turn()
    assert desk.owner.events[-1] == "finished"
    assert desk.local.recv(100) == b""


class Judged(Desk):
    """A desk whose owner admits what begins with `+`, and refuses what begins with `-`."""

    def __init__(self) -> None:
        super().__init__()
        self.judged: list[tuple[bytes, bool]] = []
        self.bridge = SocketBridge(self.bridge.socket, self.loop, self.owner, self.admits)
        self.bridge.join(self.far)

    def admits(self, sock: socket.socket, begin: bytearray, over: bool) -> bool | None:
        self.judged.append((bytes(begin), over))
        return {b"+": True, b"-": False}.get(bytes(begin[:1]))


@pytest.fixture
def judged() -> Iterator[Judged]:
    made = Judged()
    yield made
    made.bridge.close()
    made.local.close()
    made.loop.close()


def wait(desk: Desk, happened: Callable[[], Any]) -> None:
    desk.loop.call_later(5, lambda: pytest.fail("it did not happen"))
    while not happened():
        desk.loop._turn()


def test_nothing_flows_either_way_before_the_first_bytes_are_admitted(judged: Judged) -> None:
    judged.open()
    assert judged.bridge.received(memoryview(b"early answer")) == 0
    judged.local.setblocking(False)
    with pytest.raises(BlockingIOError):
        judged.local.recv(100)
    judged.local.send(b"+question")
    judged.turn()
    assert judged.judged == [(b"+question", False)]
    assert judged.far.sent == b"+question"
    assert judged.local.recv(100) == b"early answer"


def test_a_server_that_talks_first_is_heard_by_a_client_that_is_silent(judged: Judged) -> None:
    judged.open()
    judged.bridge.received(memoryview(b"welcome"))
    wait(judged, lambda: judged.bridge._started)
    judged.turn()
    assert judged.local.recv(100) == b"welcome"
    judged.local.send(b"-question")
    judged.turn()
    assert judged.far.sent == b""
    assert judged.far.closed


def test_what_comes_in_pieces_is_judged_with_each_and_once_more_after_a_while(
    judged: Judged,
) -> None:
    judged.open()
    for piece in (b"a", b"b"):
        judged.local.send(piece)
        judged.turn()
    wait(judged, lambda: len(judged.judged) == 3)
    assert judged.judged == [(b"a", False), (b"ab", False), (b"ab", True)]
    assert not judged.bridge._started
    judged.local.shutdown(socket.SHUT_WR)
    judged.turn()
    assert judged.judged[-1] == (b"ab", True)
    assert judged.owner.events[-1] == "finished", "half a request reaches nobody"


def test_what_was_held_back_finds_the_next_connection(judged: Judged) -> None:
    judged.open()
    judged.local.send(b"*")
    judged.turn()
    judged.bridge.lost()
    judged.turn()
    assert judged.owner.events[-1] == "failed"
    assert judged.bridge.question == b"*"
