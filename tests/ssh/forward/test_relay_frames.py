"""The relay's frames on the laptop's side, over a channel in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.place.host.addresses import Target
from jlremote.remote import sending
from jlremote.remote.relay import DATA, HEAD, OPEN
from jlremote.ssh.forward import container_relay
from jlremote.ssh.forward.container_relay import WINDOW, Relay, window_beside

PROGRAM = sending.packed("jlremote.remote.relay")
TARGET = Target("127.0.0.1", 8888, ("docker", "exec", "-i", "cont1", "python3"))


class Loop:
    """Runs actions at once."""

    def call(self, action: Any) -> None:
        action()


class Channel:
    """Keeps what it is sent; has room for `space` bytes."""

    def __init__(self, _transport: Any, _handler: Any, _loop: Any, on_stderr: Any) -> None:
        self.on_stderr = on_stderr
        self.space = 1 << 20
        self.sent = b""
        self.requests: list[tuple[bytes, bytes]] = []
        self.closed = False

    def ask_session(self) -> None:
        pass

    def request(self, kind: bytes, details: bytes) -> None:
        self.requests.append((kind, details))

    def room(self) -> int:
        return self.space - len(self.sent)

    def send(self, data: memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True


class Bridge:
    """Notes what it is told; takes `takes` bytes of each piece."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.data = b""
        self.takes = 1 << 30
        self.far: Any = None
        for event in ("opened", "ended", "closed", "writable", "lost"):
            setattr(self, event, partial(self.events.append, event))

    def join(self, far: Any) -> None:
        self.far = far

    def received(self, data: memoryview) -> int:
        taken = min(len(data), self.takes)
        self.data += bytes(data[:taken])
        return taken

    def refused(self, reason: str) -> None:
        self.events.append(reason)


class Desk:
    """A relay whose program is the test."""

    def __init__(self, target: Target = TARGET) -> None:
        loop: Any = Loop()
        self.transport = object()
        facts = {"transport": self.transport, "with_sudo_password": lambda script: script}
        connection: Any = SimpleNamespace(**facts)
        self.relay = Relay(connection, target, loop)
        self.channel: Any = self.relay._channel

    def start(self) -> Desk:
        """Let the program say that it is ready."""
        self.relay.opened()
        self.channel.sent = b""
        self.say(self.relay._marker.encode() + b"\n")
        assert self.channel.sent.startswith(PROGRAM)
        self.channel.sent = self.channel.sent[len(PROGRAM) :]
        return self

    def say(self, data: bytes) -> None:
        self.relay.received(memoryview(data))

    def connect(self) -> Bridge:
        bridge: Any = Bridge()
        self.relay.connect(bridge, TARGET)
        made: Bridge = bridge
        return made

    def frames(self) -> list[tuple[int, int, int, bytes]]:
        """Return the frames that were sent since the last call."""
        sent, self.channel.sent, found = self.channel.sent, b"", []
        while sent:
            kind, number, count = HEAD.unpack_from(sent)
            end = HEAD.size + (count if kind in (OPEN, DATA) else 0)
            found.append((kind, number, count, sent[HEAD.size : end]))
            sent = sent[end:]
        return found


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(container_relay, "SessionChannel", Channel)
    return Desk()


@pytest.mark.lab  # it takes a second
def test_the_program_that_runs_is_as_old_as_the_link() -> None:
    """An upgrade may put another program beside a link that runs, with another protocol."""
    code = """if True:
        import importlib.resources
        import jlremote.link.service.link_server
        del importlib.resources.files
        from jlremote.remote import sending
        assert all(sending.packed(f"jlremote.remote.{name}") for name in ("relay", "tls_relay"))
    """
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_relay_that_sends_more_than_it_was_granted_ends(desk: Desk) -> None:
    """A hostile container would fill the link's memory."""
    bridge = desk.start().connect()
    bridge.takes = 0
    piece = HEAD.pack(DATA, 1, WINDOW // 2) + bytes(WINDOW // 2)
    desk.say(piece + piece)
    assert bridge.events == []
    bridge.takes = 1 << 30
    desk.say(HEAD.pack(DATA, 1, 1) + b"x" + piece)
    assert (bridge.events, bridge.data, desk.channel.closed) == (["lost"], b"", True)


def test_many_streams_share_their_windows(desk: Desk) -> None:
    desk.start()
    desk.channel.space = 1 << 30
    for _ in range(900):
        desk.connect()
    windows = [json.loads(body)[0] for _, _, _, body in desk.frames()]
    assert windows[:16] == [WINDOW] * 16
    assert windows[-1] == window_beside(899) == 64 << 10
    assert sum(windows) < 180 << 20  # and not 1.8 GB
    late = desk.connect()
    assert late.far.room() == 64 << 10


def test_a_host_that_complains_for_ever_fills_no_memory(desk: Desk) -> None:
    desk.relay.opened()
    for _ in range(100):
        desk.channel.on_stderr(bytes(1 << 20))
    assert len(desk.relay._complaint) < 1 << 12


@pytest.mark.parametrize(
    ("stdout", "stderr", "reason"),
    [
        (b"", b"no such container\n\n", "no such container"),
        (b"This account is closed.\n", b"", "This account is closed."),
        (b"", b"", "it ended at once"),
    ],
)
def test_a_relay_that_never_started_refuses_with_the_last_line(
    desk: Desk, stdout: bytes, stderr: bytes, reason: str
) -> None:
    bridge = desk.connect()
    desk.relay.opened()
    desk.say(stdout)
    desk.channel.on_stderr(stderr)
    desk.relay.ended()
    assert bridge.events == [f"the relay did not start: {reason}"]


def test_a_program_that_fails_is_no_reason_to_try_again_for_ever(desk: Desk) -> None:
    bridge = desk.start().connect()
    desk.channel.on_stderr(b"ImportError: No module named 'ssl'\n")
    desk.relay.ended()
    assert bridge.events == ["the relay did not start: ImportError: No module named 'ssl'"]


def test_a_connection_that_is_lost_before_the_start_is_tried_again(desk: Desk) -> None:
    bridge = desk.connect()
    desk.relay.lost()
    assert bridge.events == ["lost"]
