"""The stdin of a script's channel: the script, then further input, then its end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jlremote.ssh.channels.shell_session import StdinSender
from tests.ssh.channels.parts import Pieces


class Channel:
    """Takes at most `window` bytes until `window` is raised again."""

    def __init__(self, window: int = 1 << 30) -> None:
        self.window = window
        self.received = b""
        self.has_end = self.is_over = False

    def room(self) -> int:
        return self.window

    def send(self, data: memoryview) -> None:
        assert 0 < len(data) <= self.window
        self.window -= len(data)
        self.received += data

    def send_end(self) -> None:
        self.has_end = True


def test_a_held_stdin_stays_open() -> None:
    channel = Channel()
    StdinSender(channel, b"cat\n", None, hold=True).send()
    assert (channel.received, channel.has_end) == (b"cat\n", False)


def test_a_shell_that_has_ended_gets_nothing_more() -> None:
    channel = Channel(window=2)
    sender = StdinSender(channel, b"script", Pieces(b"input"), hold=False)
    sender.send()
    channel.is_over, channel.window = True, 100
    sender.send()
    channel.is_over = False
    sender.send()
    assert (channel.received, channel.has_end) == (b"sc", False)


@given(
    st.binary(max_size=40),
    st.lists(st.one_of(st.none(), st.binary(min_size=1, max_size=20)), max_size=8),
    st.integers(1, 7),
)
def test_all_bytes_arrive_in_order_through_any_window(
    script: bytes, pieces: list[bytes | None], window: int
) -> None:
    channel = Channel(window)
    sender = StdinSender(channel, script, Pieces(*pieces, b""), hold=False)
    for _ in range(200):
        channel.window = window
        sender.send()
    assert channel.received == script + b"".join(piece for piece in pieces if piece)
    assert channel.has_end
