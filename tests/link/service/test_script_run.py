"""Stdin of a script on its way through the link."""

from __future__ import annotations

from typing import Any

import pytest

from jlremote.link.service.conversation import CommandStdin
from jlremote.link.wire.protocol import DATA, PIECES


class Told:
    """A conversation that keeps what is said in it."""

    def __init__(self) -> None:
        self.messages: list[dict[str, int]] = []

    def say(self, message: dict[str, int]) -> None:
        self.messages.append(message)


def given(data: bytes) -> dict[str, Any]:
    return {"given": True, DATA: data}


def test_several_pieces_that_were_taken_are_told_at_once_and_never_all_are_untold() -> None:
    told: Any = Told()
    stdin = CommandStdin(told)
    under_way = PIECES
    for number in range(50):
        assert under_way, "the command waits, and all pieces were taken"
        stdin.arrived(given(b"%d" % number))
        assert bytes(stdin.take() or b"") == b"%d" % number
        under_way = PIECES - number - 1 + sum(message["taken"] for message in told.messages)
    assert len(told.messages) <= 50 // 4


def test_pieces_that_wait_are_joined_and_the_end_comes_by_itself() -> None:
    told: Any = Told()
    stdin = CommandStdin(told)
    for piece in (b"one", b"two", b""):
        stdin.arrived(given(piece))
    assert stdin.take() == b"onetwo"
    assert stdin.take() == b""
    assert stdin.take() is None


def test_what_is_no_piece_is_refused() -> None:
    told: Any = Told()
    with pytest.raises(ValueError, match="not a piece of stdin"):
        CommandStdin(told).arrived({"given": True})
