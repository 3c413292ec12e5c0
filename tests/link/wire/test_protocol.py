"""Messages cross the socket as JSON, and anything else is refused."""

from __future__ import annotations

import os
import socket
from multiprocessing import Pipe

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.link.wire.protocol import (
    DATA,
    MESSAGE_BYTES,
    Message,
    MessageReader,
    bytes_of,
    output_now,
    receive,
    send,
    send_rest,
    text_of,
)
from tests.link.fakes import Call

SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"))
MESSAGES = st.dictionaries(st.text(), st.recursive(SCALARS, st.lists, max_leaves=5))


@given(MESSAGES)
def test_a_message_arrives_as_it_was_sent(message: dict[str, object]) -> None:
    here, there = Pipe()
    with here, there:
        send(here, message)
        assert receive(there) == message


@given(MESSAGES, st.binary())
def test_bytes_arrive_behind_a_message(message: dict[str, object], data: bytes) -> None:
    here, there = Pipe()
    with here, there:
        send(here, message | {DATA: data})
        assert receive(there) == message | {DATA: data}


@given(st.binary())
def test_bytes_of_any_encoding_survive_as_text(data: bytes) -> None:
    here, there = Pipe()
    with here, there:
        send(here, {"text": text_of(data)})
        assert bytes_of(receive(there)["text"]) == data


@pytest.mark.parametrize("data", [b"", b"\xff", b"{", b"[]", b'"text"', b"null", b"\n", b"[]\n{}"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    here, there = Pipe()
    with here, there:
        here.send_bytes(data)
        with pytest.raises(ValueError):  # noqa: PT011  # json's own, or ours
            receive(there)


def test_a_message_that_is_too_long_is_refused_before_it_is_read() -> None:
    here, there = Pipe()
    with here, there:
        here._send((MESSAGE_BYTES + 1).to_bytes(4, "big"))  # type: ignore[attr-defined]
        with pytest.raises(OSError):  # noqa: PT011  # multiprocessing gives no reason
            receive(there)


def test_the_end_of_the_other_side_is_told_from_a_message() -> None:
    here, there = Pipe()
    here.close()
    with there, pytest.raises(EOFError):
        receive(there)
    with pytest.raises(OSError, match="closed"):
        send(here, {})


@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr", None]), st.binary()), max_size=20))
def test_output_of_one_stream_that_has_come_is_one_message(
    sent: list[tuple[str | None, bytes]],
) -> None:
    here, there = Pipe()
    expected: list[Message] = []
    with here, there:
        for stream, data in sent:
            message: Message = {"stream": stream, DATA: data} if stream else {"taken": len(data)}
            send(here, message)
            if stream and expected and expected[-1].get("stream") == stream:
                expected[-1][DATA] += data
            else:
                expected.append(message)
        reader = MessageReader(there)
        assert [reader.receive() for _ in expected] == expected
        assert not reader.wait(0)


def test_output_that_does_not_have_to_wait_is_cut_where_the_socket_is_full() -> None:
    here, there = Pipe()
    plain = socket.socket(fileno=os.dup(here.fileno()))
    with here, there, plain:
        piece, taken = os.urandom(1_000_000), 0
        while not (rest := output_now(plain, "stderr", memoryview(piece))):
            assert rest is not None, "a large piece is cut"
            taken += 1
        assert output_now(plain, "stderr", memoryview(piece)) is None
        left = rest

        def end() -> None:
            send_rest(here, left)
            send(here, {"result": 0})

        ending = Call(end)
        reader, came = MessageReader(there), b""
        while "result" not in (message := reader.receive()):
            assert message["stream"] == "stderr"
            came += message[DATA]
        ending.result()
        assert came == piece * (taken + 1)
