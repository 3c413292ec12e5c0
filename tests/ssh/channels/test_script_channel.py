"""The channel of a script: its output in order, counted until it was passed on."""

from __future__ import annotations

from typing import Any

from paramiko import Message

from jlremote.ssh.channels.channel_registry import FIRST_WINDOW
from jlremote.ssh.channels.session_channel import ScriptChannel
from jlremote.ssh.wire_format import string
from tests.ssh.channels.parts import Transport


def opened() -> tuple[ScriptChannel, Transport]:
    transport = Transport()
    channel = ScriptChannel(transport)
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
