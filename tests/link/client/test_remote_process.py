"""A script over the link: its bytes or its text after the marker, and its stdin in turn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import JlrError
from jlremote.link.client.remote_process import RemoteOutput, RemoteProcess
from jlremote.link.wire.protocol import PIECES
from tests.link.fakes import Call

MARKER = "jlr-c0ffee"
BEGIN = {"stream": "stdout", "data": f"{MARKER}\n".encode()}
Message = dict[str, Any]


def printed(data: bytes, stream: str = "stdout") -> Message:
    return {"stream": stream, "data": data}


def pieces(said: list[Message]) -> list[bytes]:
    """Return the pieces of stdin among the messages that were sent."""
    return [message["data"] for message in said if "given" in message]


def process(*messages: Message, marker: str | None = MARKER) -> tuple[RemoteProcess, list[Message]]:
    said: list[Message] = []
    return RemoteProcess(iter(messages), marker, said.append), said


def test_a_shell_that_ends_before_the_script_is_an_error_with_its_last_words() -> None:
    told, _ = process(printed(b"This account is locked.\n"), {"result": 1})
    with pytest.raises(JlrError, match="This account is locked"):
        list(told)
    assert told.status is None


def test_stdin_waits_until_the_script_reads_it() -> None:
    waiting: list[Call[bool]] = []

    def messages() -> Iterator[Message]:
        yield BEGIN
        assert waiting[0].result()
        assert all(remote.give(b"more") for _ in range(PIECES - 1))
        waiting.append(Call(lambda: remote.give(b"too many")))
        assert waiting[1].running
        yield {"taken": 1}
        assert waiting[1].result()
        yield {"result": 0}

    said: list[Message] = []
    remote = RemoteProcess(messages(), MARKER, said.append)
    waiting.append(Call(lambda: remote.give(b"one")))
    assert waiting[0].running
    assert list(remote) == []
    assert pieces(said) == [b"one", *[b"more"] * (PIECES - 1), b"too many"]


def test_a_thread_that_waits_to_give_is_released_when_the_process_is_left() -> None:
    remote, said = process()
    giving = Call(lambda: remote.give(b"too late"))
    assert giving.running
    remote.leave()
    assert not giving.result()
    assert said == []


@given(st.text(st.characters(codec="utf-8")), st.lists(st.integers(0, 400), max_size=6))
def test_text_comes_whole_however_its_bytes_are_cut(text: str, cuts: list[int]) -> None:
    data = f"noise\n{MARKER}\n{text}".encode()
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    parts = [printed(data[a:b]) for a, b in itertools.pairwise(edges)]
    output = RemoteOutput(process(*parts, {"result": 0})[0], ())
    assert "".join(output) == text
    assert output.status == 0
