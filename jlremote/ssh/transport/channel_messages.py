"""Messages for one channel; what goes wrong with one ends its channel, not the connection."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import paramiko
from paramiko import common

from jlremote.ssh.transport.channel_opening import end_channel

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
