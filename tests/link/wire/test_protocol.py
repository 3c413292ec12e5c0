"""Messages cross the socket as JSON, and anything else is refused."""

from __future__ import annotations

from multiprocessing import Pipe

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.link.wire.protocol import MESSAGE_BYTES, bytes_of, receive, send, text_of


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
