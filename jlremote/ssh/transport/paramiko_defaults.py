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


def _guarded(name: str) -> Callable[[Any, Any], None]:
    """Return a handler of a channel's message, in which an exception ends only the channel."""

    def guarded(channel: Any, message: Any) -> None:
        try:
            getattr(channel, name)(message)
        except Exception:  # noqa: BLE001 - a server may send anything
            _log.exception("a message could not be handled; its channel is closed")
            channel.fail()

    return guarded


CHANNEL_HANDLERS = {
    kind: _guarded(handler.__name__)
    for kind, handler in paramiko.Transport._channel_handler_table.items()
}
