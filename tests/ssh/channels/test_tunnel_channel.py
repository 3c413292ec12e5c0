"""A tunnel channel, the registry that channels of one connection share, and their loop."""

from __future__ import annotations

import logging

import pytest
from paramiko import Message, common

from jlremote.ssh.channels.channel_registry import BUFFER_LIMIT, FIRST_WINDOW, ChannelRegistry
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.wire_format import opening
from tests.ssh.channels.parts import Handler, Transport

PACKET = 1000


@pytest.fixture
def transport() -> Transport:
    return Transport()


def opened(transport: Transport, handler: Handler, window: int = 5000) -> TunnelChannel:
    channel = TunnelChannel(transport, handler, transport.call)
    channel.ask(*opening(("10.0.0.2", 8888)))
    channel._set_remote_channel(77, window, PACKET)
    transport.sent.clear()
    return channel


def test_the_handler_learns_of_room_only_after_there_was_none(transport: Transport) -> None:
    handler = Handler()
    channel = opened(transport, handler, window=10)
    channel._window_adjust(Message((5).to_bytes(4, "big")))
    assert "writable" not in handler.events
    channel.send(memoryview(bytes(15)))
    assert channel.room() == 0
    channel._window_adjust(Message((5).to_bytes(4, "big")))
    assert handler.events[-1] == "writable"
    assert channel.room() == 5


def test_a_channel_that_cannot_go_on_is_closed_and_no_other(transport: Transport) -> None:
    class Broken(Handler):
        def writable(self) -> None:
            raise ValueError("packets of no bytes")

    channel = opened(transport, Broken(), window=0)
    transport.windows[channel._number](5)
    transport.run()
    assert transport.sent == [common.cMSG_CHANNEL_CLOSE + (77).to_bytes(4, "big")]


def test_a_channel_is_closed_by_both_sides_and_its_number_used_again(transport: Transport) -> None:
    handler = Handler()
    channel = opened(transport, handler)
    number = channel._number
    channel._handle_close(None)
    assert handler.events == ["opened", "closed"]
    channel.close()
    channel.close()
    assert transport.sent == [common.cMSG_CHANNEL_CLOSE + (77).to_bytes(4, "big")]
    assert not transport.sinks
    assert not transport.windows
    assert opened(transport, Handler())._number == number


def test_a_channel_that_was_given_up_is_closed_once_it_opens(transport: Transport) -> None:
    handler = Handler()
    channel = TunnelChannel(transport, handler, transport.call)
    channel.ask(b"direct-tcpip")
    channel.close()
    transport.sent.clear()
    channel._set_remote_channel(9, 100, 100)
    transport.run()
    assert transport.sent == [common.cMSG_CHANNEL_CLOSE + (9).to_bytes(4, "big")]
    assert handler.events == []


def test_the_window_is_given_back_when_data_was_passed_on(transport: Transport) -> None:
    handler = Handler()
    channel = opened(transport, handler)
    handler.takes = 0
    piece = memoryview(bytes(FIRST_WINDOW // 2))
    channel._take(piece)
    transport.run()
    assert transport.sent == [], "unread data keeps the window"
    channel.consumed(len(piece))
    transport.run()
    (adjust,) = transport.sent
    assert adjust[:1] == common.cMSG_CHANNEL_WINDOW_ADJUST
    assert int.from_bytes(adjust[5:], "big") >= len(piece)


def test_windows_do_not_grow_while_too_much_is_unread(transport: Transport) -> None:
    registry = ChannelRegistry.of(transport)
    registry.answered(0.03)
    registry.unread(BUFFER_LIMIT + 1)
    assert registry.grown(1 << 30) == FIRST_WINDOW
    registry.unread(-BUFFER_LIMIT - 1)
    assert registry.grown(1 << 30) == 4_800_000


def test_an_error_of_one_handler_does_not_end_the_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop, done = EventLoop(), list[bool]()

    def fail() -> None:
        raise ValueError("one connection's")

    with caplog.at_level(logging.ERROR):
        loop.call(fail)
        loop.call(lambda: done.append(True))
        loop.call(loop.stop)
        loop.run()
    loop.close()
    assert done == [True]
    assert "one connection's" in caplog.text
