"""Messages cross the socket as JSON, and anything else is refused."""

from __future__ import annotations

from multiprocessing import Pipe

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.link.wire.protocol import (
    DATA,
    MESSAGE_BYTES,
    bytes_of,
    receive,
    send,
    text_of,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"))
MESSAGES = st.dictionaries(st.text(), st.recursive(SCALARS, st.lists, max_leaves=5))


@given(MESSAGES, st.none() | st.binary())
def test_a_message_arrives_as_it_was_sent(message: dict[str, object], data: bytes | None) -> None:
    sent = message if data is None else message | {DATA: data}
    here, there = Pipe()
    with here, there:
        send(here, sent)
        assert receive(there) == sent


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
