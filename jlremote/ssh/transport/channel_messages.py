"""The opening of paramiko's channels, and messages for any: a wrong one ends only its channel."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import paramiko
from paramiko import common

# Of paramiko's channels.
WINDOW = 4 << 20
_LARGEST_PACKET = 32 << 10
_SIGNALS = {"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9, "USR1": 10}
_SIGNALS |= {"SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15}

_log = logging.getLogger(__name__)


def _by_name(name: str) -> Callable[[Any, Any], None]:
    """Return a handler that calls a method of the channel, a `TunnelChannel` or paramiko's."""

    def handle(channel: Any, message: Any) -> None:
        try:
            getattr(channel, name)(message)
        except Exception:  # noqa: BLE001 - a server may send anything
            fail(channel)

    return handle


def fail(channel: Any) -> None:
    """End a channel whose message raised an exception."""
    _log.exception("a message could not be handled; its channel is closed")
    if isinstance(channel, paramiko.Channel):
        end_channel(channel)
    else:
        channel.fail()


def _handle_request(channel: Any, message: Any) -> None:
    """Note an exit status, and refuse all other requests; RFC 4254 section 5.4 wants an answer."""
    try:
        kind, wants_answer = message.get_string(), message.get_boolean()
        if kind in {b"exit-status", b"exit-signal"} and not isinstance(channel, paramiko.Channel):
            channel.exited(_exit_status(kind, message))
        elif wants_answer:
            _refuse(channel)
    except Exception:  # noqa: BLE001 - as above
        fail(channel)


def _exit_status(kind: bytes, message: Any) -> int:
    """Return how a command ended, by a signal too, which paramiko drops."""
    if kind == b"exit-status":
        return int(message.get_int())
    return 128 + _SIGNALS.get(message.get_string().decode("ascii", "replace"), 0)


def _refuse(channel: Any) -> None:
    if isinstance(channel, paramiko.Channel):
        failure = common.cMSG_CHANNEL_FAILURE + channel.remote_chanid.to_bytes(4, "big")
        channel.transport.reply(failure)
    else:
        channel.refuse_request()


CHANNEL_HANDLERS = {
    **{
        kind: _by_name(handler.__name__)
        for kind, handler in paramiko.Transport._channel_handler_table.items()
    },
    common.MSG_CHANNEL_REQUEST: _handle_request,
}


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
    for number in (channel.chanid, WINDOW, _LARGEST_PACKET):
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
        channel._set_window(WINDOW, _LARGEST_PACKET)
    return channel, answered


def end_channel(channel: Any) -> None:
    """Close one of paramiko's channels from the reading thread."""
    channel.transport.reply(common.cMSG_CHANNEL_CLOSE + channel.remote_chanid.to_bytes(4, "big"))
    channel._unlink()
