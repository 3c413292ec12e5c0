"""An sshfs joined with the SFTP subsystem, over a transport in memory; links that lead outside."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.ssh.forward.sftp_streams import LinkGuard, stays_inside
from jlremote.ssh.wire_format import string

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
    with pytest.raises(ValueError, match="of 1048576 bytes"):
        guard.answered(memoryview(struct.pack(">IBI", 1 << 20, NAME, 1)))
