"""SSH packets of AES-GCM, read in large pieces by the thread that waits for them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import paramiko
from cryptography.exceptions import InvalidTag
from paramiko import common

from jlremote.ssh.transport.packet_format import BLOCK, DATA, LARGEST_PACKET, LENGTH, TAG, Keys

_BUFFER = 1 << 20
Sink = Callable[[memoryview], None]


class PacketReader:
    """Reads packets from a socket, and passes channels their data straight from there.

    Attributes:
        keys: the keys of the packets; `None` until they are agreed on.
        sinks: take the data of a channel, by its number; channels without one get messages from
            the transport.
        windows: are told how many more bytes a channel may send, by its number.

    A `sock` that is no socket is not read from.
    """

    def __init__(self, sock: Any, is_exchange_due: Callable[[], bool]) -> None:
        self.keys: Keys | None = None
        self.decompress: Callable[[bytes], bytes] | None = None
        self.sinks: dict[int, Sink] = {}
        self.windows: dict[int, Callable[[int], None]] = {}
        self._socket = sock
        self._is_exchange_due = is_exchange_due
        self._buffer = memoryview(bytearray(_BUFFER if isinstance(sock, socket.socket) else 0))
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
        """Tell a channel of more room; sshd does so thousands of times for a large upload."""
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
        size = self._size()
        if self._end - self._start < LENGTH.size + size + TAG:
            self._fill(LENGTH.size + size + TAG)
        return self._decrypt(keys, size)

    def _size(self) -> int:
        """Return the size of the next packet, whose length has arrived."""
        size: int = LENGTH.unpack_from(self._buffer, self._start)[0]
        if not BLOCK <= size <= LARGEST_PACKET or size % BLOCK:
            raise paramiko.SSHException(f"a packet claims to have {size} bytes")
        return size

    def _decrypt(self, keys: Keys, size: int) -> bytes:
        """Return the next packet, which has arrived and has `size` bytes."""
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

    def _fill(self, wanted: int) -> None:
        """Read until the buffer holds `wanted` bytes."""
        while self._end - self._start < wanted:
            self._receive(wanted)

    def _receive(self, wanted: int) -> None:
        """Read what has arrived, after making room for `wanted` bytes."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start + wanted > _BUFFER:
            rest = bytes(self._buffer[self._start : self._end])
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        try:
            count: int = self._socket.recv_into(self._buffer[self._end :])
        except OSError as error:
            raise EOFError("the connection broke") from error
        if not count:
            raise EOFError("the server closed the connection")
        self._end += count
