"""The format of AES-GCM packets, RFC 5647 and RFC 4253 section 6."""

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
# The head of a packet of channel data: the padding's length, the kind, the channel, the size.
DATA = struct.Struct(">BBII")
DATA_HEAD = DATA.size - 1  # without the padding's length


def _padding(payload: int) -> bytes:
    """Return the padding for a payload of `payload` bytes beyond whole blocks."""
    count = BLOCK - (1 + payload) % BLOCK
    return bytes(count if count >= _LEAST_PADDING else count + BLOCK)


# By the payload's size beyond whole blocks. It need not be random: known parts of an AES-GCM text
# reveal nothing about the rest.
PADDINGS = [_padding(payload) for payload in range(BLOCK)]


class Keys:
    """One direction's AES-GCM state: the first packet's nonce, and how many `packets` followed.

    After `limit` bytes `exhausted` is called with every packet.
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
