"""An sshfs joined with the SFTP subsystem, over a transport in memory."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
from paramiko import Message

from jlremote.ssh.channels.channel_registry import PAUSES
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.forward.sftp_streams import SftpStream
from tests.ssh.channels.parts import Transport

ANSWER = struct.pack(">IBI", 6, 102, 1) + b"x"


class Connection:
    """A connection that has nothing but its transport."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport


class Desk:
    """A stream between `local` and the transport; its loop runs in the test's thread."""

    def __init__(self) -> None:
        self.transport = Transport()
        self.loop = EventLoop()
        self.local, theirs = socket.socketpair()
        self.local.settimeout(5)
        self.ends: list[str | None] = []
        connection: Any = Connection(self.transport)
        self.stream = SftpStream(connection, theirs, "/project", self.loop, self.ends.append)
        self.channel: Any = self.stream
        self.turn()

    def turn(self) -> None:
        for _ in range(3):
            self.loop.call(lambda: None)
            self.loop._turn()

    def open(self) -> None:
        self.transport.sent.clear()
        self.channel._set_remote_channel(5, 1 << 20, 1 << 15)
        self.turn()


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.stream.abort()
    made.turn()
    made.local.close()
    made.loop.close()


def test_what_the_host_sends_and_takes_is_heard(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.open()
    now = [desk.stream.heard + 100]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    desk.channel._take(memoryview(ANSWER))
    assert desk.stream.heard == now[0]
    assert desk.local.recv(100) == ANSWER
    now[0] += 5
    desk.channel._window_adjust(Message((10).to_bytes(4, "big")))
    assert desk.stream.heard == now[0]


def test_a_host_without_the_subsystem_ends_the_stream_with_the_reason(desk: Desk) -> None:
    desk.open()
    desk.channel._request_failed(None)
    desk.turn()
    assert desk.ends == ["the host's SSH server offers no `sftp` subsystem"]
    assert desk.local.recv(1) == b""


def test_a_refused_session_ends_the_stream_with_the_reason(desk: Desk) -> None:
    for _ in range(len(PAUSES) + 1):  # it asks again meanwhile
        desk.channel.refuse("open failed")
    desk.turn()
    (reason,) = desk.ends
    assert reason is not None
    assert "`MaxSessions`" in reason


@pytest.mark.parametrize("is_open", [False, True])
def test_a_lost_connection_ends_the_stream_without_a_reason(desk: Desk, is_open: bool) -> None:
    if is_open:
        desk.open()
    desk.channel._unlink()
    desk.turn()
    assert desk.ends == [None]


def test_an_aborted_stream_resets_sshfs_and_ends_once(desk: Desk) -> None:
    desk.open()
    desk.stream.abort()
    desk.stream.abort()
    desk.turn()
    assert desk.ends == [None]
