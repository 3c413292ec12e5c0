"""SSH packets of AES-GCM, read in large pieces by the thread that waits for them."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import paramiko
from cryptography.exceptions import InvalidTag
from paramiko import common

from jlremote.ssh.transport.packet_format import BLOCK, DATA, LARGEST_PACKET, LENGTH, TAG, Keys

_BUFFER = 1 << 20
_LARGEST = LENGTH.size + LARGEST_PACKET + TAG
_NOW: int = getattr(socket, "MSG_DONTWAIT", 0)  # not on Windows
# Bytes that `poll` reads at once: it waits for a small message.
_PIECE = 128 * 1024
# A packet with less data is passed on together with those behind it.
_SMALL = 8 << 10

# Seconds that a borrower has to accept: it may be busy, or ending.
_ACCEPT_SECONDS = 0.05

# How long packets may wait for others, where that is allowed.
_NAP_SECONDS = 0.001

_OWN, _OFFERED, _LENT = range(3)

Sink = Callable[[memoryview], None]


class PacketReader:
    """Reads packets from a socket, and passes channels their data straight from there.

    Attributes:
        socket: the source of the packets.
        talked_at: when a small message of a conversation went over the connection last, seconds of
            the monotonic clock; downloads beside it give way.
        keys: the keys of the packets; `None` until they are agreed on.
        is_unhurried: whether the next packets may wait for more to come behind them. To read each
            one as it comes wakes the thread, and the program that gets it, thousands of times a
            second. A sink sets it, for the next time only.
        sinks: take the data of a channel, by its number; channels without one get messages from
            the transport. Called from the transport's thread, or from the one that polls.
        windows: are told how many more bytes a channel may send, by its number; called from the
            transport's thread only.
        joined: the channels whose sinks take the data of small packets together.

    While `is_exchanging`, senders wait for the reader. A `sock` that is no socket is not read from.
    """

    def __init__(
        self, sock: Any, is_exchange_due: Callable[[], bool], is_exchanging: Callable[[], bool]
    ) -> None:
        self.keys: Keys | None = None
        self.decompress: Callable[[bytes], bytes] | None = None
        self.sinks: dict[int, Sink] = {}
        self.windows: dict[int, Callable[[int], None]] = {}
        self.joined: set[int] = set()
        self.socket = sock
        self._is_exchange_due = is_exchange_due
        self._is_exchanging = is_exchanging
        self._buffer = memoryview(bytearray(_BUFFER if isinstance(sock, socket.socket) else 0))
        self._start = self._end = self._received = 0
        self.is_unhurried = False
        self.talked_at = -math.inf
        self._handover = ReaderHandover()
        self._left: bytes | None = None
        self._surprise: Exception | None = None

    def read(self, keys: Keys) -> bytes | None:
        """Return the next packet that is for no sink, or `None` when new keys are due.

        It begins with the padding's length and ends with the padding.

        Raises:
            EOFError: the connection ended.
            paramiko.SSHException: a packet is mangled.
        """
        while True:
            if self._handover.wanted is not None and self._may_lend():
                self._handover.lend()
            plain = self._left_over() or self._packet(keys)
            if not self._sink(keys, plain):
                return plain
            if self._is_exchange_due():
                return None

    def take_rest(self) -> bytes:
        """Return what was read beyond the last packet, which has another cipher."""
        rest = bytes(self._buffer[self._start : self._end])
        self._start = self._end = 0
        return rest

    def _may_lend(self) -> bool:
        is_left = self._left is not None or self._surprise is not None
        return self._start == self._end and not (is_left or self._is_exchanging())

    # Called by a forward's thread; see `busy_poll`.

    def want(self, offer: Callable[[], None]) -> None:
        """Ask to read; `offer` is called from the transport's thread when that may begin."""
        if _NOW:
            self._handover.wanted = offer

    def borrow(self) -> bool:
        """Begin to read; return whether that is still possible. Then `give_back` must follow."""
        return self._handover.borrow()

    def give_back(self) -> None:
        """Let the transport's thread read again."""
        self._handover.give_back()

    def poll(self) -> bool:
        """Pass arrived packets to sinks; return `False` when the transport's thread must go on."""
        keys = self.keys
        if keys is None:
            return False
        taken: list[tuple[int, memoryview]] = []
        try:
            self._receive(_LARGEST, most=_PIECE, flags=_NOW)
            self._take_arrived(keys, taken)
        except BlockingIOError:
            return True
        except Exception as surprise:  # noqa: BLE001 - raised again in the transport's thread
            self._surprise = surprise
        # Only now, one after the other: a program that the first one wakes finds the others there,
        # and need not be woken for each of them.
        for number, data in taken:
            sink = self.sinks.get(number)
            if sink is not None:
                sink(data)
        may_go_on = self._left is None and self._surprise is None
        return may_go_on and not self._is_exchange_due()

    def _take_arrived(self, keys: Keys, taken: list[tuple[int, memoryview]]) -> None:
        """Decrypt the packets that are there, up to one that only the transport handles.

        New keys are such a packet; what follows them is not for `keys`.
        """
        while self._left is None and self._is_packet_there():
            plain = self._decrypt(keys, self._size())
            if plain[1] == common.MSG_CHANNEL_DATA:
                _, _, number, count = DATA.unpack_from(plain)
                if number in self.sinks:
                    taken.append((number, memoryview(plain)[DATA.size : DATA.size + count]))
                    continue
            self._left = plain

    def _is_packet_there(self) -> bool:
        """Return whether all of the next packet has arrived."""
        there = self._end - self._start
        return there >= LENGTH.size and there >= LENGTH.size + self._size() + TAG

    def _left_over(self) -> bytes | None:
        """Return the packet that was decrypted before its turn, or raise the error of that."""
        surprise, self._surprise = self._surprise, None
        if surprise is not None:
            raise surprise
        left, self._left = self._left, None
        return left

    def _sink(self, keys: Keys, plain: bytes) -> bool:
        """Pass a packet to its channel; return `False` for one that the transport must handle."""
        if plain[1] != common.MSG_CHANNEL_DATA:
            return plain[1] == common.MSG_CHANNEL_WINDOW_ADJUST and self._widen(plain)
        _, _, number, size = DATA.unpack_from(plain)
        sink = self.sinks.get(number)
        if sink is None:
            return False
        data = memoryview(plain)[DATA.size : DATA.size + size]
        if size < _SMALL and self._start != self._end and number in self.joined:
            data = self._joined(keys, number, data)
        sink(data)
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

    def _joined(self, keys: Keys, number: int, data: memoryview) -> memoryview:
        """Return data with that of the packets behind it that are for the same channel.

        sshd sends what a program writes in small pieces as packets of some hundred bytes. To write
        each by itself takes three times as long as to read and decrypt it.
        """
        pieces, size = [data], len(data)
        try:
            while size < _PIECE and self._is_packet_there():
                plain = self._decrypt(keys, self._size())
                more = _data_for(number, plain)
                if more is None:
                    self._left = plain
                    break
                pieces.append(more)
                size += len(more)
        except Exception as surprise:  # noqa: BLE001 - raised again once this data was passed on
            self._surprise = surprise
        return memoryview(b"".join(pieces)) if len(pieces) > 1 else data

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

    def _receive(self, wanted: int, *, most: int = _BUFFER, flags: int = 0) -> None:
        """Read at most `most` arrived bytes, after making room for `wanted`."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start + wanted > _BUFFER:
            rest = bytes(self._buffer[self._start : self._end])
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        if self.is_unhurried and not flags:
            self.is_unhurried = False
            if self._received < _PIECE:
                time.sleep(_NAP_SECONDS)
        try:
            free = self._buffer[self._end : self._end + most]
            count: int = self.socket.recv_into(free, 0, flags)
        except BlockingIOError:
            raise
        except OSError as error:
            raise EOFError("the connection broke") from error
        if not count:
            raise EOFError("the server closed the connection")
        self._end += count
        self._received = count


def _data_for(number: int, plain: bytes) -> memoryview | None:
    """Return the data of a packet for one channel, `None` of another packet."""
    if plain[1] != common.MSG_CHANNEL_DATA:  # it may be shorter than one of data
        return None
    _, _, other, count = DATA.unpack_from(plain)
    return memoryview(plain)[DATA.size : DATA.size + count] if other == number else None


class ReaderHandover:
    """Hands the reading of a connection to another thread and back; one of both reads at a time.

    `wanted` tells the other thread that it may read, without waiting; `None` if none wants to.
    """

    def __init__(self) -> None:
        self.wanted: Callable[[], None] | None = None
        self._state = _OWN
        self._lock = threading.Lock()
        self._returned = threading.Event()

    def lend(self) -> None:
        """Let the other thread read until it gives back; in the connection's own thread."""
        offer, self.wanted = self.wanted, None
        if offer is None:
            return
        self._returned.clear()
        self._state = _OFFERED
        offer()
        if not self._returned.wait(_ACCEPT_SECONDS) and not self._take_back():
            self._returned.wait()

    def borrow(self) -> bool:
        """Begin to read; return whether the offer still stands. Then `give_back` must follow."""
        with self._lock:
            if self._state != _OFFERED:
                return False
            self._state = _LENT
            return True

    def give_back(self) -> None:
        """Let the connection's own thread go on."""
        with self._lock:
            self._state = _OWN
        self._returned.set()

    def _take_back(self) -> bool:
        """Withdraw the offer; return whether it was still open."""
        with self._lock:
            if self._state == _LENT:
                return False
            self._state = _OWN
            return True
