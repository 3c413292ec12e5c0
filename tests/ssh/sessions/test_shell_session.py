"""The stdin of a script's channel: the script, then further input, then its end."""

from __future__ import annotations

import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jlremote.ssh.sessions.shell_session import StdinSender
from tests.ssh.channels.parts import Pieces


class Channel:
    """Takes at most `window` bytes until `window` is raised again."""

    def __init__(self, window: int = 1 << 30) -> None:
        self.window = window
        self.received = b""
        self.has_end = self.is_over = self.is_busy = False
        self.wake = threading.Event()

    def room(self) -> int:
        return self.window

    def send(self, data: memoryview) -> None:
        assert 0 < len(data) <= self.window
        self.window -= len(data)
        self.received += data

    def send_now(self, data: memoryview) -> bool:
        if not self.is_busy:
            self.send(data)
        return not self.is_busy

    def send_end(self) -> None:
        self.has_end = True


def test_a_script_without_input_is_followed_by_the_end() -> None:
    channel = Channel()
    StdinSender(channel, b"exit 0\n", None, hold=False).send()
    assert (channel.received, channel.has_end) == (b"exit 0\n", True)


def test_a_held_stdin_stays_open() -> None:
    channel = Channel()
    StdinSender(channel, b"cat\n", None, hold=True).send()
    assert (channel.received, channel.has_end) == (b"cat\n", False)


def test_input_follows_the_script_as_it_arrives() -> None:
    channel = Channel()
    sender = StdinSender(channel, b"cat\n", Pieces(b"one", None, b"two", b""), hold=False)
    sender.send()
    assert (channel.received, channel.has_end) == (b"cat\none", False)
    sender.send()
    assert (channel.received, channel.has_end) == (b"cat\nonetwo", True)


def test_a_full_window_loses_nothing() -> None:
    channel = Channel(window=3)
    sender = StdinSender(channel, b"script", None, hold=False)
    sender.send()
    assert (channel.received, channel.has_end) == (b"scr", False)
    channel.window = 100
    sender.send()
    assert (channel.received, channel.has_end) == (b"script", True)


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


def test_input_goes_from_the_thread_that_brings_it_and_the_end_from_the_other() -> None:
    channel, pieces = Channel(), Pieces(None, b"one", None, b"two", b"")
    sender = StdinSender(channel, b"cat\n", pieces, hold=False)
    sender.send()
    assert sender.send_now()
    assert channel.received == b"cat\none"
    assert not sender.send_now()
    assert (channel.received, channel.has_end) == (b"cat\nonetwo", False)
    sender.send()
    assert channel.has_end


def test_a_wake_that_brings_no_input_is_for_the_script() -> None:
    """It may tell that the call was cancelled."""
    sender = StdinSender(Channel(), b"cat\n", Pieces(), hold=False)
    sender.send()
    assert not sender.send_now()


def test_more_room_may_come_as_soon_as_the_sender_takes_it() -> None:
    class Ready(Channel):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "on_room":
                value()

    channel = Ready()
    StdinSender(channel, b"script", None, hold=False)
    assert channel.received == b"script"


def test_after_it_was_stopped_nothing_is_sent() -> None:
    channel = Channel(window=2)
    sender = StdinSender(channel, b"script", Pieces(b"input"), hold=False)
    sender.send()
    sender.stop()
    channel.window = 100
    sender.room_came()
    assert not sender.send_now()
    sender.send()
    assert (channel.received, channel.has_end) == (b"sc", False)


@given(
    st.lists(st.one_of(st.none(), st.binary(min_size=1, max_size=20)), max_size=8),
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 7)), max_size=60),
)
def test_all_bytes_arrive_in_order_from_either_thread(
    pieces: list[bytes | None], turns: list[tuple[bool, bool, int]]
) -> None:
    channel = Channel()
    sender = StdinSender(channel, b"script", Pieces(*pieces, b""), hold=False)
    for is_now, channel.is_busy, channel.window in turns:
        sender.send_now() if is_now else sender.send()
    channel.window = 1 << 30
    for _ in range(20):
        sender.send()
    assert channel.received == b"script" + b"".join(piece for piece in pieces if piece)
    assert channel.has_end
