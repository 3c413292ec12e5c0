"""AES-GCM packets (RFC 5647, RFC 4253 section 6), read in large pieces by the waiting thread."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

import paramiko
from cryptography.exceptions import InvalidTag
from paramiko import common

_BUFFER = 1 << 20
Sink = Callable[[memoryview], None]

# OpenSSH takes no larger packet either.
LARGEST_PACKET = 256 * 1024
TAG = 16
BLOCK = 16
_LEAST_PADDING = 4

LENGTH = struct.Struct(">I")
NONCE = struct.Struct(">4sQ")
# The head of a packet of channel data: the padding's length, the kind, the channel, the size.
DATA = struct.Struct(">BBII")


def _padding(payload: int) -> bytes:
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


class PacketReader:
    """Reads packets from a socket, and passes channels their data straight from there.

    Attributes:
        keys: the keys of the packets; `None` until they are agreed on.
        sinks: take the data of a channel, by its number; channels without one get messages from
            the transport.
        windows: are told how many more bytes a channel may send, by its number.
    """

    def __init__(self, sock: socket.socket, is_exchange_due: Callable[[], bool]) -> None:
        self.keys: Keys | None = None
        self.decompress: Callable[[bytes], bytes] | None = None
        self.sinks: dict[int, Sink] = {}
        self.windows: dict[int, Callable[[int], None]] = {}
        self._socket = sock
        self._is_exchange_due = is_exchange_due
        self._buffer = memoryview(bytearray(_BUFFER))
        self._start = self._end = 0

    def read(self, keys: Keys) -> bytes | None:
        """Return the next packet that is for no sink, or `None` when new keys are due.

        It begins with the padding's length and ends with the padding.

        Raises:
            EOFError: the connection ended.
            paramiko.SSHException: a packet is mangled.
        """
        while True:
            plain = self._packet(keys)
            if not self._sink(plain):
                return plain
            if self._is_exchange_due():
                return None

    def take_rest(self) -> bytes:
        """Return what was read beyond the last packet, which has another cipher."""
        rest = bytes(self._buffer[self._start : self._end])
        self._start = self._end = 0
        return rest

    def _sink(self, plain: bytes) -> bool:
        """Pass a packet to its channel; return `False` for one that the transport must handle."""
        if plain[1] != common.MSG_CHANNEL_DATA:
            return plain[1] == common.MSG_CHANNEL_WINDOW_ADJUST and self._widen(plain)
        _, _, number, size = DATA.unpack_from(plain)
        sink = self.sinks.get(number)
        if sink is None:
            return False
        sink(memoryview(plain)[DATA.size : DATA.size + size])
        return True

    def _widen(self, plain: bytes) -> bool:
        if len(plain) < DATA.size:
            return False
        _, _, number, more = DATA.unpack_from(plain)
        widen = self.windows.get(number)
        if widen is not None:
            widen(more)
        return widen is not None

    def _packet(self, keys: Keys) -> bytes:
        """Return the next packet, decrypted: the padding's length, the payload, the padding."""
        if self._end - self._start < LENGTH.size:
            self._fill(LENGTH.size)
        size: int = LENGTH.unpack_from(self._buffer, self._start)[0]
        if not BLOCK <= size <= LARGEST_PACKET or size % BLOCK:
            raise paramiko.SSHException(f"a packet claims to have {size} bytes")
        if self._end - self._start < LENGTH.size + size + TAG:
            self._fill(LENGTH.size + size + TAG)
        start = self._start
        begin = start + LENGTH.size
        self._start = end = begin + size + TAG
        buffer = self._buffer
        try:
            plain: bytes = keys.decrypt(keys.nonce(size), buffer[begin:end], buffer[start:begin])
        except InvalidTag as error:
            raise paramiko.SSHException("a packet was changed on the way") from error
        if self.decompress is not None:
            return b"\0" + self.decompress(plain[1 : size - plain[0]])
        return plain

    def _fill(self, needed: int) -> None:
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start + needed > _BUFFER:
            rest = bytes(self._buffer[self._start : self._end])
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        while self._end - self._start < needed:
            try:
                count = self._socket.recv_into(self._buffer[self._end :])
            except OSError as error:
                raise EOFError("the connection broke") from error
            if not count:
                raise EOFError("the server closed the connection")
            self._end += count
