"""What a packet of AES-GCM looks like, RFC 5647 and RFC 4253 section 6."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

# OpenSSH takes no larger packet either.
LARGEST_PACKET = 256 * 1024
TAG = 16
BLOCK = 16
_LEAST_PADDING = 4

LENGTH = struct.Struct(">I")
NONCE = struct.Struct(">4sQ")
# How a packet of channel data begins: the padding's count, the kind, the channel, the size.
DATA = struct.Struct(">BBII")
DATA_HEAD = DATA.size - 1  # without the count


def _padding(payload: int) -> bytes:
    """Return the padding for a payload of so many bytes beyond whole blocks."""
    count = BLOCK - (1 + payload) % BLOCK
    return bytes(count if count >= _LEAST_PADDING else count + BLOCK)


# By the payload's size beyond whole blocks. It need not be random: nothing is known of an AES-GCM
# text from parts of it.
PADDINGS = [_padding(payload) for payload in range(BLOCK)]


class Keys:
    """One direction's AES-GCM state: the nonce counts packets.

    Attributes:
        packets: how many these keys were used for.

    Args:
        engine: what encrypts and decrypts.
        nonce: of the first packet.
        limit: how many bytes they are for; then `exhausted` is called, again and again.
    """

    def __init__(
        self, engine: Any, nonce: bytes, limit: int, exhausted: Callable[[], None]
    ) -> None:
        self.packets = 0
        self.encrypt = engine.encrypt
        self.decrypt = engine.decrypt
        self._fixed = nonce[:4]
        self._first = int.from_bytes(nonce[4:], "big")
        self._left = limit
        self._exhausted = exhausted

    def nonce(self, size: int) -> bytes:
        """Return the nonce of the next packet, which has `size` bytes."""
        number = (self._first + self.packets) & 0xFFFFFFFFFFFFFFFF
        self.packets += 1
        self._left -= size
        if self._left < 0:
            self._exhausted()
        return NONCE.pack(self._fixed, number)
