"""The channel of a script: its output in order, counted until it was passed on."""

from __future__ import annotations

from typing import Any

from paramiko import Message

from jlremote.ssh.contract import WriteNow
from jlremote.ssh.sessions.script_channel import ScriptChannel
from jlremote.ssh.sessions.shell_session import StdinSender
from jlremote.ssh.transport.tuning import FIRST_WINDOW
from jlremote.ssh.wire_format import string
from tests.ssh.channels.parts import Pieces, Transport


def opened(write_now: WriteNow | None = None) -> tuple[ScriptChannel, Transport]:
    transport = Transport()
    channel = ScriptChannel(transport, write_now)
    channel.ask(b"session")
    channel._set_remote_channel(77, 10, 1000)
    transport.sent.clear()
    return channel, transport


def stderr(data: bytes) -> Any:
    return Message((1).to_bytes(4, "big") + string(data))


def test_both_streams_come_in_the_order_of_their_arrival() -> None:
    channel, _ = opened()
    channel._take(memoryview(b"one"))
    channel._take(memoryview(b"two"))
    channel._feed_extended(stderr(b"three"))
    channel._take(memoryview(b"four"))
    assert channel.wake.is_set()
    taken = [channel.take() for _ in range(4)]
    assert taken == [("stdout", b"onetwo"), ("stderr", b"three"), ("stdout", b"four"), None]


def test_small_packets_are_one_piece_while_the_channel_is_open() -> None:
    channel, transport = opened()
    assert transport.joined == {channel._number}
    channel._unlink()
    assert not transport.joined


def test_output_is_written_at_once_until_that_has_to_wait_and_then_again() -> None:
    written: list[tuple[str, bytes]] = []
    answers: list[memoryview | None] = [memoryview(b""), memoryview(b"wo"), memoryview(b"")]

    def write_now(stream: str, data: memoryview) -> memoryview | None:
        written.append((stream, bytes(data)))
        return answers.pop(0) if answers else None

    channel, _ = opened(write_now)
    channel._take(memoryview(b"one"))
    assert not channel.wake.is_set()
    channel._feed_extended(stderr(b"two"))
    channel._take(memoryview(b"three"))
    assert written == [("stdout", b"one"), ("stderr", b"two")]
    assert channel.take() == ("rest", b"wo")
    channel._take(memoryview(b"four"))
    assert channel.take() == ("stdout", b"threefour")
    assert channel.take() is None
    channel._take(memoryview(b"five"))
    channel._take(memoryview(b"six"))
    assert written[2:] == [("stdout", b"five"), ("stdout", b"six")]
    assert channel.take() == ("stdout", b"six")
    for size in (2, 9, 3):
        channel.consumed(size)
    assert (channel._unread, channel._credit) == (0, FIRST_WINDOW - 22)


def test_a_server_may_send_no_more_than_was_passed_on() -> None:
    channel, transport = opened()
    for _ in range(FIRST_WINDOW // 1024):
        channel._take(memoryview(bytes(512)))
        channel._feed_extended(stderr(bytes(512)))
    channel.run_actions()
    assert transport.sent == []
    channel.consumed(FIRST_WINDOW)
    channel.run_actions()
    assert len(transport.sent) == 1


def test_what_ends_the_channel_wakes_all_who_wait() -> None:
    for end in (ScriptChannel.lost, ScriptChannel.closed, lambda it: it._request_failed(None)):
        channel, _ = opened()
        end(channel)
        assert channel.is_over
        assert channel.exit_status is None
        assert all(event.is_set() for event in (channel.answered, channel.exit, channel.wake))


def test_a_window_that_grows_wakes_the_sender() -> None:
    channel, _ = opened()
    channel.send(memoryview(bytes(10)))
    channel.wake.clear()
    channel._window_adjust(Message((5).to_bytes(4, "big")))
    assert channel.wake.is_set()
    assert channel.room() == 5


def test_a_window_that_grows_takes_the_rest_of_a_piece_in_the_transports_thread() -> None:
    channel, transport = opened()
    sender = StdinSender(channel, b"script", Pieces(b"123456789", b"next"), hold=False)
    sender.send()
    channel.wake.clear()
    transport.windows[channel._number](4)
    assert not channel.wake.is_set(), "a byte of the piece still waits for more room"
    channel.is_over = True
    transport.windows[channel._number](4)
    assert channel.wake.is_set(), "the script's thread looks for the end"
    channel.is_over = False
    channel.wake.clear()
    sender.room_came()
    assert channel.wake.is_set(), "only the script's thread takes the next piece"
    assert [message[-4:] for message in transport.sent] == [b"ript", b"1234", b"5678", b"\0\0\x019"]
