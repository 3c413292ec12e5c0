"""SSH packets, read and written in large pieces.

paramiko reads a packet in two or three calls of `recv`, each behind a `poll`, copies it four times,
and writes each packet by itself. This one does so too until keys are agreed, and with ciphers other
than AES-GCM; with AES-GCM, which every server of the last ten years has, it reads all that is there
at once and writes several packets at once.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import paramiko
from cryptography.exceptions import InvalidTag
from paramiko import common
from paramiko.packet import NeedRekeyException
from paramiko.packet import Packetizer as PlainPacketizer

# OpenSSH takes no larger packet either.
_LARGEST_PACKET = 256 * 1024
_BUFFER = 1 << 20
_TAG = 16
_BLOCK = 16
_LEAST_PADDING = 4
# Linux takes 1,024 pieces at once.
_MOST_PIECES = 512
_CAN_GATHER = hasattr(socket.socket, "sendmsg")  # not on Windows
_ALL = 0xFFFFFFFF

_LENGTH = struct.Struct(">I")
_NONCE = struct.Struct(">4sQ")
# How a packet of channel data begins: the padding's count, the kind, the channel, the size.
_DATA = struct.Struct(">BBII")
_DATA_HEAD = _DATA.size - 1  # without the count


def _padding(payload: int) -> bytes:
    """Return the padding for a payload of so many bytes beyond whole blocks."""
    count = _BLOCK - (1 + payload) % _BLOCK
    return bytes(count if count >= _LEAST_PADDING else count + _BLOCK)


_PADDINGS = [_padding(payload) for payload in range(_BLOCK)]

Sink = Callable[[memoryview], None]


class _Keys:
    """One direction's AES-GCM state, RFC 5647: the nonce counts packets.

    Attributes:
        packets: how many these keys were used for.
        carried: how many bytes.
        fixed, first: the nonce of the first packet, in two parts.
    """

    def __init__(self, engine: Any, nonce: bytes) -> None:
        self.engine = engine
        self.packets = 0
        self.carried = 0
        self.fixed = nonce[:4]
        self.first = int.from_bytes(nonce[4:], "big")


class Packetizer(PlainPacketizer):  # type: ignore[misc]  # paramiko has no types
    """paramiko's packetizer with a way of its own for AES-GCM.

    Attributes:
        already_sent: what is to be left out when it is written first: a greeting that went ahead.
        sinks: by a channel's number, who takes the data that comes on it; whoever is not here
            gets messages from the transport. Called from the transport's thread.
    """

    # OpenSSH's own limit for these ciphers, RFC 4344 allows 16 times as much. Each exchange stops
    # both directions for two round trips.
    REKEY_BYTES = 1 << 32

    def __init__(self, sock: Any) -> None:
        super().__init__(sock)
        self.already_sent = b""
        self.sinks: dict[int, Sink] = {}
        self._socket = sock
        self._is_socket = isinstance(sock, socket.socket)
        self._keys_in: _Keys | None = None
        self._keys_out: _Keys | None = None
        self._decompress: Callable[[bytes], bytes] | None = None
        self._compress: Callable[[bytes], bytes] | None = None
        self._buffer = memoryview(bytearray(_BUFFER if self._is_socket else 0))
        self._start = self._end = 0
        self._sending = threading.Lock()
        self._exchanging = True
        self._exchange_asked = False

    @property
    def packets_read(self) -> int:
        """How many packets were read, modulo 2**32; begins anew with new keys."""
        return self._number_in()

    # What paramiko's transport calls.

    def write_all(self, out: bytes) -> None:
        """Write bytes as they are."""
        if out != self.already_sent:
            super().write_all(out)
        self.already_sent = b""

    def close(self) -> None:
        """Close the socket, and wake whoever waits for it."""
        if self._is_socket:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        super().close()

    def set_inbound_cipher(self, *, aead: bool = False, iv_in: Any = None, **rest: Any) -> None:
        """Use new keys for what comes."""
        super().set_inbound_cipher(aead=aead, iv_in=iv_in, **rest)
        self._Packetizer__sequence_number_in = self._number_in()
        self._exchange_asked = False
        self._exchanging = False  # the outbound keys came before, with what compresses
        self._keys_in = None
        if aead and self._is_socket:
            self._keys_in = _Keys(rest["block_engine"], iv_in)
            # Its end wakes a thread that reads: it need not look whether it was closed.
            self._socket.settimeout(None)

    def set_outbound_cipher(self, *, aead: bool = False, iv_out: Any = None, **rest: Any) -> None:
        """Use new keys for what goes."""
        super().set_outbound_cipher(aead=aead, iv_out=iv_out, **rest)
        self._Packetizer__sequence_number_out += self._keys_out.packets if self._keys_out else 0
        self._Packetizer__sequence_number_out &= _ALL
        self._keys_out = None
        if aead and self._is_socket:
            self._keys_out = _Keys(rest["block_engine"], iv_out)

    def set_inbound_compressor(self, compressor: Callable[[bytes], bytes]) -> None:
        """Decompress from now on."""
        super().set_inbound_compressor(compressor)
        self._decompress = compressor

    def set_outbound_compressor(self, compressor: Callable[[bytes], bytes]) -> None:
        """Compress from now on."""
        super().set_outbound_compressor(compressor)
        self._compress = compressor

    def send_message(self, message: Any) -> None:
        """Send one message, also during an exchange of keys; the transport knows when it may."""
        content = message.asbytes()
        with self._sending:
            if content[0] == common.MSG_KEXINIT:
                self._exchanging = True
            self._send([(content,)])

    def read_message(self) -> tuple[int, Any]:
        """Return the next message that is not for a sink, and its kind.

        Raises:
            EOFError: the connection ended.
            NeedRekeyException: new keys are due.
            paramiko.SSHException: a packet is mangled.
        """
        while self._keys_in is not None:
            plain = self._read_packet(self._keys_in)
            kind = plain[1]
            if kind == common.MSG_CHANNEL_DATA:
                _, _, number, size = _DATA.unpack_from(plain)
                sink = self.sinks.get(number)
                if sink is not None:
                    sink(memoryview(plain)[_DATA.size : _DATA.size + size])
                    if self.need_rekey():
                        self._ask_for_exchange()
                    continue
            message = paramiko.Message(plain[2 : len(plain) - plain[0]])
            message.seqno = (self._number_in() - 1) & _ALL
            return kind, message
        kind, message = super().read_message()
        return kind, message

    # What channels call.

    def send_payloads(self, payloads: Sequence[tuple[bytes | memoryview, ...]]) -> bool:
        """Send several messages at once, each given in parts, unless keys are exchanged just now.

        Raises:
            EOFError: the connection broke.
        """
        with self._sending:
            if self._exchanging:
                return False
            self._send(payloads)
            return True

    def send_data(self, number: int, data: bytes | memoryview) -> bool:
        """Send a packet of data to the peer's channel `number`, as `send_payloads` would.

        What a small message waits for: each call of a function costs it a microsecond or two, since
        no cache is warm after a wait.
        """
        size = len(data)
        padding = _PADDINGS[(_DATA_HEAD + size) % _BLOCK]
        head = _DATA.pack(len(padding), common.MSG_CHANNEL_DATA, number, size)
        with self._sending:
            keys = self._keys_out
            if not self._exchanging and keys is not None and self._compress is None:
                plain = b"".join((head, data, padding))
                length = _LENGTH.pack(len(plain))
                sealed = keys.engine.encrypt(self._nonce(keys, len(plain)), plain, length)
                try:
                    self._socket.sendall(length + sealed)
                except OSError as error:
                    raise EOFError("the connection broke") from error
                return True
        return self.send_payloads([(head[1:], data)])

    def _send(self, payloads: Sequence[tuple[bytes | memoryview, ...]]) -> None:
        """Send messages; hold `_sending`."""
        keys = self._keys_out
        if keys is None:
            for parts in payloads:
                super().send_message(paramiko.Message(b"".join(parts)))
            return
        try:
            self._write([piece for parts in payloads for piece in self._seal(keys, parts)])
        except OSError as error:
            raise EOFError("the connection broke") from error

    def _seal(self, keys: _Keys, parts: tuple[bytes | memoryview, ...]) -> tuple[bytes, bytes]:
        """Return a packet's length, which stays readable, and the rest, which does not."""
        if self._compress is not None:
            parts = (self._compress(b"".join(parts)),)
        # What pads need not be random: nothing is known of an AES-GCM text from parts of it.
        padding = _PADDINGS[sum(map(len, parts)) % _BLOCK]
        plain = b"".join((bytes((len(padding),)), *parts, padding))
        length = _LENGTH.pack(len(plain))
        return length, keys.engine.encrypt(self._nonce(keys, len(plain)), plain, length)

    def _write(self, pieces: list[bytes]) -> None:
        while pieces:
            some, pieces = pieces[:_MOST_PIECES], pieces[_MOST_PIECES:]
            sent = self._socket.sendmsg(some) if _CAN_GATHER else 0
            if sent < sum(map(len, some)):
                self._socket.sendall(memoryview(b"".join(some))[sent:])

    def _read_packet(self, keys: _Keys) -> bytes:
        """Return what the next packet holds: the padding's count, the payload, the padding."""
        if self._end - self._start < _LENGTH.size:
            self._fill(_LENGTH.size)
        (size,) = _LENGTH.unpack_from(self._buffer, self._start)
        if not _BLOCK <= size <= _LARGEST_PACKET or size % _BLOCK:
            raise paramiko.SSHException(f"a packet claims to have {size} bytes")
        if self._end - self._start < _LENGTH.size + size + _TAG:
            self._fill(_LENGTH.size + size + _TAG)
        start = self._start
        begin = start + _LENGTH.size
        self._start = end = begin + size + _TAG
        buffer = self._buffer
        try:
            plain: bytes = keys.engine.decrypt(
                self._nonce(keys, size), buffer[begin:end], buffer[start:begin]
            )
        except InvalidTag as error:
            raise paramiko.SSHException("a packet is not what was sent") from error
        if self._decompress is not None:
            return b"\0" + self._decompress(plain[1 : size - plain[0]])
        return plain

    def _fill(self, wanted: int) -> None:
        """Read until `wanted` bytes are there."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start + wanted > len(self._buffer):
            rest = bytes(self._buffer[self._start : self._end])
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        while self._end - self._start < wanted:
            free = self._buffer[self._end :] if self._end else self._buffer
            try:
                count = self._socket.recv_into(free)
            except OSError as error:
                raise EOFError("the connection broke") from error
            if not count:
                raise EOFError("the server closed the connection")
            self._end += count

    def _nonce(self, keys: _Keys, size: int) -> bytes:
        """Return the nonce of the next packet, which has `size` bytes."""
        number = (keys.first + keys.packets) & 0xFFFFFFFFFFFFFFFF
        keys.packets += 1
        keys.carried += size
        if keys.carried > self.REKEY_BYTES:
            self._trigger_rekey()
        return _NONCE.pack(keys.fixed, number)

    def _number_in(self) -> int:
        """Return the next packet's sequence number: paramiko's count knows nothing of ours."""
        counted: int = self._Packetizer__sequence_number_in
        return (counted + (self._keys_in.packets if self._keys_in else 0)) & _ALL

    def _ask_for_exchange(self) -> None:
        """Let the transport renew the keys, once, when either direction has used them enough."""
        if not self._exchange_asked:
            self._exchange_asked = True
            raise NeedRekeyException
