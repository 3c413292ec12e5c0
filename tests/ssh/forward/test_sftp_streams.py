"""An sshfs joined with the SFTP subsystem, over a transport in memory; links that lead outside."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.ssh.channels.channel_registry import PAUSES
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.forward.sftp_streams import LinkGuard, SftpStream, stays_inside
from jlremote.ssh.wire_format import string
from tests.lab.programs import PATIENCE
from tests.ssh.channels.parts import Transport


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
        self.local.settimeout(PATIENCE)
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


READ, READLINK, STATUS, DATA, NAME = 5, 19, 101, 103, 104


def packet(kind: int, number: int, rest: bytes = b"") -> bytes:
    return struct.pack(">IBI", 5 + len(rest), kind, number) + rest


def name(number: int, target: bytes) -> bytes:
    return packet(NAME, number, struct.pack(">I", 1) + string(target) * 2 + bytes(4))


@pytest.mark.parametrize(
    ("target", "depth", "inside"),
    [
        (b"x", 0, True),
        (b"./a//b/", 0, True),
        (b"", 0, True),
        (b"../x", 0, False),
        (b"../x", 1, True),
        (b"./../x", 1, True),
        (b"../../x", 1, False),
        (b"..", 1, True),
        (b"../a/../b", 2, False),  # `a` may be a link to another depth
        (b"a/..", 2, False),
        (b"/x", 9, False),
        (b"..x/...", 0, True),
    ],
)
def test_a_target_stays_inside_or_not(target: bytes, depth: int, inside: bool) -> None:
    assert stays_inside(target, depth) == inside


@settings(max_examples=60)
@given(st.lists(st.integers(1, 40), max_size=30), st.lists(st.integers(1, 40), max_size=30))
def test_answers_are_judged_wherever_the_streams_are_cut(
    asked: list[int], answered: list[int]
) -> None:
    guard = LinkGuard("/project")
    requests = packet(READ, 1, string(b"handle")) + b"".join(
        packet(READLINK, number, string(path))
        for number, path in ((2, b"/project/a/up"), (3, b"/project/up"), (4, b"/project/a/gone"))
    )
    for piece in cut(requests, asked):
        guard.asked(piece)
    answers = (
        packet(DATA, 1, string(bytes(70000))),
        name(3, b"../x"),
        packet(STATUS, 4, struct.pack(">I", 2) + string(b"no such file") + string(b"")),
        name(2, b"../x"),
        name(9, b"/a/real/path"),
    )
    stream = b"".join(answers)
    got = b"".join(guard.answered(piece) for piece in cut(stream, answered))
    refused = len(answers[1])
    begin = len(answers[0])
    assert got[:begin] + got[begin + refused :] == stream[:begin] + stream[begin + refused :]
    head = struct.unpack_from(">IBII", got, begin)
    assert head == (refused - 4, STATUS, 3, 3)
    assert len(got) == len(stream)
    assert b".." not in got[begin : begin + refused]


def cut(stream: bytes, lengths: list[int]) -> list[memoryview]:
    pieces, rest = [], memoryview(stream)
    for length in lengths:
        pieces.append(rest[:length])
        rest = rest[length:]
    return [*pieces, rest]


def test_a_stream_of_another_kind_is_no_stream() -> None:
    guard = LinkGuard("/")
    with pytest.raises(ValueError, match="of 2 bytes"):
        guard.answered(memoryview(struct.pack(">IBI", 2, NAME, 1)))
    guard = LinkGuard("/")
    guard.asked(memoryview(packet(READLINK, 1, string(b"/x"))))
    with pytest.raises(ValueError, match="with a path"):
        guard.answered(memoryview(struct.pack(">IBI", 1 << 20, NAME, 1)))
