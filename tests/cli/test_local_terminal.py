"""`~.` at the beginning of a line ends a terminal, as with ssh; everything else is typed."""

from __future__ import annotations

import pytest

from jlremote.cli.keyboard.local_terminal import Escapes


@pytest.mark.parametrize(
    ("typed", "sent", "hung_up"),
    [
        ("~.", "", True),
        ("ls\r~.", "ls\r", True),
        ("ls\n~.more", "ls\n", True),
        ("ls ~.", "ls ~.", False),
        ("~~.", "~.", False),
        ("~~\r", "~\r", False),
        ("~/bin/x\r~", "~/bin/x\r", False),
        ("~\r~.", "~\r", True),
        ("", "", False),
    ],
)
@pytest.mark.parametrize("piece", [1, 100])
def test_only_a_tilde_at_the_beginning_of_a_line_begins_one(
    typed: str, sent: str, hung_up: bool, piece: int
) -> None:
    escapes = Escapes()
    pieces = (typed.encode()[at : at + piece] for at in range(0, len(typed), piece))
    out = b""
    for data in pieces:
        out += escapes.without(data)
        if escapes.hung_up:
            break
    assert (out.decode(), escapes.hung_up) == (sent, hung_up)
