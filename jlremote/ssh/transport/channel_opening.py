"""The opening of paramiko's channels, whose answer may come too late."""

from __future__ import annotations

import threading
from typing import Any

import paramiko
from paramiko import common

from jlremote.ssh.transport.tuning import LARGEST_PACKET

WINDOW = 4 << 20


def open_channel(transport: Any, kind: str, details: bytes, seconds: float) -> Any:
    """Return a new channel; `Transport` closes one that is granted after `seconds`.

    paramiko looks ten times a second whether there is an answer, and leaves such a channel open:
    it would keep one of the server's sessions.

    Raises:
        paramiko.SSHException: the server refused, or the time is over.
    """
    channel, answered = _registered(transport)
    request = paramiko.Message()
    request.add_byte(common.cMSG_CHANNEL_OPEN).add_string(kind)
    for number in (channel.chanid, WINDOW, LARGEST_PACKET):
        request.add_int(number)
    request.add_bytes(details)
    transport._send_user_message(request)
    if transport.active:  # else it was registered after the others had been told
        answered.wait(seconds)
    with transport.lock:
        is_unanswered = transport.channel_events.pop(channel.chanid, None) is not None
    if is_unanswered and transport.active:
        raise paramiko.SSHException("the server did not answer in time")
    if not channel.active:  # one that the server closed at once was granted, too
        raise transport.get_exception() or paramiko.SSHException("the connection is gone")
    return channel


def _registered(transport: Any) -> tuple[Any, threading.Event]:
    """Return a channel that the transport knows, and the event of the server's answer."""
    answered = threading.Event()
    with transport.lock:
        channel = paramiko.Channel(transport._next_channel())
        transport._channels.put(channel.chanid, channel)
        transport.channels_seen[channel.chanid] = True
        transport.channel_events[channel.chanid] = answered
        channel._set_transport(transport)
        channel._set_window(WINDOW, LARGEST_PACKET)
    return channel, answered


def end_channel(channel: Any) -> None:
    """Close one of paramiko's channels from the reading thread."""
    channel.transport.reply(common.cMSG_CHANNEL_CLOSE + channel.remote_chanid.to_bytes(4, "big"))
    channel._unlink()
