"""What paramiko lacks or does unsafely, and what no subclass of its transport changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import paramiko
from paramiko import common
from paramiko.kex_curve25519 import KexCurve25519
from paramiko.kex_gex import KexGexSHA256

_SIGNALS = {"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9, "USR1": 10}
_SIGNALS |= {"SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15}

_log = logging.getLogger(__name__)


def set_defaults() -> None:
    """Let paramiko wait by the monotonic clock, and survive messages that it does not know.

    Its waits take the wall clock: set back meanwhile, it would let them last for hours. And it ends
    a connection when it has no name for a message.
    """
    for module in (paramiko.transport, paramiko.packet):
        module.time = SimpleNamespace(time=time.monotonic, sleep=time.sleep)
    for kind in range(256):
        common.MSG_NAMES.setdefault(kind, f"message {kind}")


class GroupExchange(KexGexSHA256):  # type: ignore[misc]  # paramiko has no types
    """Diffie-Hellman with a group that the server chooses, of 2,048 bits at least.

    paramiko asks for that, and then takes a group of 1,024 bits too.
    """

    preferred_bits = 3072  # ssh's choice for AES-128

    def _parse_kexdh_gex_group(self, message: Any) -> None:
        bits = message.get_mpint().bit_length()
        if bits < self.min_bits:
            raise paramiko.SSHException(f"the server chose a Diffie-Hellman group of {bits} bits")
        message.rewind()
        super()._parse_kexdh_gex_group(message)


KEY_EXCHANGES = {
    # The same exchange under the name that RFC 8731 gave it; some servers know only that.
    "curve25519-sha256": KexCurve25519,
    "diffie-hellman-group-exchange-sha256": GroupExchange,
}


def _guarded(handle: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Return a handler of a channel's message, in which an exception ends only the channel."""

    def guarded(channel: Any, message: Any) -> None:
        try:
            handle(channel, message)
        except Exception:  # noqa: BLE001 - a server may send anything
            _log.exception("a message could not be handled; its channel is closed")
            channel.fail()

    return guarded


def _by_name(name: str) -> Callable[[Any, Any], None]:
    return _guarded(lambda channel, message: getattr(channel, name)(message))


def _handle_request(channel: Any, message: Any) -> None:
    """Note how a command ended, by a signal too; refuse all else, as RFC 4254 section 5.4 wants."""
    kind, wants_answer = message.get_string(), message.get_boolean()
    if kind == b"exit-status":
        channel.exited(int(message.get_int()))
    elif kind == b"exit-signal":
        name = message.get_string().decode("ascii", "replace")
        channel.exited(128 + _SIGNALS.get(name, 0))
    elif wants_answer:
        channel.refuse_request()


CHANNEL_HANDLERS = {
    kind: _by_name(handler.__name__)
    for kind, handler in paramiko.Transport._channel_handler_table.items()
} | {common.MSG_CHANNEL_REQUEST: _guarded(_handle_request)}
