"""SSH packets, read and written in large pieces.

paramiko reads a packet in two or three calls of `recv`, each behind a `poll`, copies it four times,
and writes each packet by itself. This one does so too until keys are agreed on, and with ciphers
other than AES-GCM; with AES-GCM, which every server of the last ten years has, its `PacketReader`
reads many packets at once, and it writes many at once.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import paramiko
from cryptography.exceptions import InvalidTag
from paramiko import common
from paramiko.packet import NeedRekeyException
from paramiko.packet import Packetizer as PlainPacketizer

# Linux takes 1,024 pieces at once.
_MOST_PIECES = 512
_CAN_GATHER = hasattr(socket.socket, "sendmsg")  # not on Windows
_ALL = 0xFFFFFFFF
# Bytes that wait in the connection's socket while the line is full.
_UNSENT = 128 << 10
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
# By the payload's size beyond whole blocks. It need not be random: known parts of an AES-GCM text
# reveal nothing about the rest.
PADDINGS = [bytes(_LEAST_PADDING + (-1 - size - _LEAST_PADDING) % BLOCK) for size in range(BLOCK)]


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
    """Reads packets from a socket, and passes channels their data straight from there."""

    def __init__(self, sock: socket.socket, is_exchange_due: Callable[[], bool]) -> None:
        self.keys: Keys | None = None  # `None` until they are agreed on
        self.decompress: Callable[[bytes], bytes] | None = None
        # By the number of a channel: what takes its data, and is told how many more bytes it may
        # send. Those without get messages from the transport.
        self.sinks: dict[int, Sink] = {}
        self.windows: dict[int, Callable[[int], None]] = {}
        self._socket = sock
        self._is_exchange_due = is_exchange_due
        self._buffer = memoryview(bytearray(_BUFFER))
        self._start = self._end = 0

    def read(self, keys: Keys) -> bytes | None:
        """Return the next packet that is for no sink, or `None` when new keys are due.

        It begins with the padding's length and ends with the padding. `EOFError` if the connection
        ended, `paramiko.SSHException` if a packet is mangled.
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


class Packetizer(PlainPacketizer):  # type: ignore[misc]  # paramiko has no types
    """paramiko's packetizer, with its own reading and writing for AES-GCM."""

    # OpenSSH's own limit for these ciphers, RFC 4344 allows 16 times as much. Each exchange stops
    # both directions for two round trips.
    REKEY_BYTES = 1 << 32

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        # A greeting that was sent ahead, and is left out when it is written first.
        self.already_sent = b""
        self.greeting: list[str] = []  # the lines that the server sent before the key exchange
        self.reader = PacketReader(sock, self.need_rekey)
        self._socket: Any = sock
        self._keys_out: Keys | None = None
        self._uncounted_out = 0  # packets of these keys before numbers began anew
        self._compress: Callable[[bytes], bytes] | None = None
        self._sending = threading.Lock()
        self._exchanging = True
        self._exchange_asked = False

    # Called by paramiko's transport.

    def readline(self, seconds: float) -> str:
        """Keep the lines of the greeting: they tell which server this is, or why it hangs up."""
        self.greeting.append(super().readline(seconds))
        return self.greeting[-1]

    def write_all(self, out: bytes) -> None:
        if out != self.already_sent:
            super().write_all(out)
        self.already_sent = b""

    def close(self) -> None:
        """Close the socket, and wake the threads that wait for it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        super().close()

    def set_inbound_cipher(self, *, aead: bool = False, iv_in: Any = None, **rest: Any) -> None:
        super().set_inbound_cipher(aead=aead, iv_in=iv_in, **rest)
        self._Packetizer__sequence_number_in = self.packets_read
        self._exchange_asked = False
        self._exchanging = False  # the outbound keys came before, with what compresses
        self.reader.keys = None
        if aead:
            self.reader.keys = self._new_keys(rest["block_engine"], iv_in)
            # Its end wakes the reading thread, which need not check whether it was closed.
            self._socket.settimeout(None)
        else:
            self._Packetizer__remainder += self.reader.take_rest()

    def reset_seqno_out(self) -> None:
        """Count sent packets from 0; strict key exchange does so before the new keys are set."""
        super().reset_seqno_out()
        self._uncounted_out = self._keys_out.packets if self._keys_out else 0

    def set_outbound_cipher(self, *, aead: bool = False, iv_out: Any = None, **rest: Any) -> None:
        super().set_outbound_cipher(aead=aead, iv_out=iv_out, **rest)
        sent = self._keys_out.packets if self._keys_out else 0
        self._Packetizer__sequence_number_out += sent - self._uncounted_out
        self._Packetizer__sequence_number_out &= _ALL
        self._keys_out, self._uncounted_out = None, 0
        if aead:
            self._keys_out = self._new_keys(rest["block_engine"], iv_out)

    def set_inbound_compressor(self, compressor: Callable[[bytes], bytes]) -> None:
        super().set_inbound_compressor(compressor)
        self.reader.decompress = compressor

    def set_outbound_compressor(self, compressor: Callable[[bytes], bytes]) -> None:
        super().set_outbound_compressor(compressor)
        self._compress = compressor

    def send_message(self, message: Any) -> None:
        """Send one message, also during a key exchange; the transport knows which ones may go."""
        content = message.asbytes()
        with self._sending:
            if content[0] == common.MSG_KEXINIT:
                self._exchanging = True
            self._send([(content,)])

    def read_message(self) -> tuple[int, Any]:
        """Return the kind of the next message that is not for a sink, and the message.

        `NeedRekeyException` if new keys are due; else see `PacketReader.read`.
        """
        while self.reader.keys is not None:
            plain = self.reader.read(self.reader.keys)
            if plain is None:
                if not self._exchange_asked:  # either direction has reached the limit
                    self._exchange_asked = True
                    raise NeedRekeyException
                continue
            message = paramiko.Message(plain[2 : len(plain) - plain[0]])
            message.seqno = (self.packets_read - 1) & _ALL
            return plain[1], message
        kind, message = super().read_message()
        return kind, message

    # Called by channels.

    def send_payloads(self, payloads: Sequence[tuple[bytes | memoryview, ...]]) -> bool:
        """Send several messages at once, each in parts; return `False` during a key exchange."""
        with self._sending:
            if self._exchanging:
                return False
            self._send(payloads)
            return True

    def _send(self, payloads: Sequence[tuple[bytes | memoryview, ...]]) -> None:
        keys = self._keys_out
        if keys is None:
            for parts in payloads:
                super().send_message(paramiko.Message(b"".join(parts)))
            return
        try:
            self._write([piece for parts in payloads for piece in self._seal(keys, parts)])
        except OSError as error:
            raise EOFError("the connection broke") from error

    def _seal(self, keys: Keys, parts: tuple[bytes | memoryview, ...]) -> tuple[bytes, bytes]:
        """Return a packet's length, which stays readable, and its encrypted rest."""
        if self._compress is not None:
            parts = (self._compress(b"".join(parts)),)
        padding = PADDINGS[sum(map(len, parts)) % BLOCK]
        plain = b"".join((bytes((len(padding),)), *parts, padding))
        length = LENGTH.pack(len(plain))
        return length, keys.encrypt(keys.nonce(len(plain)), plain, length)

    def _write(self, pieces: list[bytes]) -> None:
        while pieces:
            some, pieces = pieces[:_MOST_PIECES], pieces[_MOST_PIECES:]
            sent = self._socket.sendmsg(some) if _CAN_GATHER else 0
            if sent < sum(map(len, some)):
                self._socket.sendall(memoryview(b"".join(some))[sent:])

    def _new_keys(self, engine: Any, nonce: bytes) -> Keys:
        return Keys(engine, nonce, self.REKEY_BYTES, self._trigger_rekey)

    @property
    def packets_read(self) -> int:
        """The next packet's sequence number, modulo 2**32; paramiko's count leaves out ours."""
        counted: int = self._Packetizer__sequence_number_in
        return (counted + (self.reader.keys.packets if self.reader.keys else 0)) & _ALL


def send_at_once(sock: socket.socket) -> None:
    """Let small messages go at once, also beside an upload.

    Nagle's algorithm costs 40 ms a message against delayed ACKs. And the system takes up to 4 MB
    that a slow line has no room for, behind which a keystroke waits: on 1 MB/s 2.2 s, with this
    limit 0.3 s, and uploads are as fast, on loopback as well as over 50 ms.
    """
    if sock.family in {socket.AF_INET, socket.AF_INET6}:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # WSL 1 may not know it
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
