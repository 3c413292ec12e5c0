"""SSH packets, read and written in large pieces.

paramiko reads a packet in two or three calls of `recv`, each behind a `poll`, copies it four times,
and writes each packet by itself. This one does so too until keys are agreed, and with ciphers other
than AES-GCM; with AES-GCM, which every server of the last ten years has, it reads all that is there
at once and writes several packets at once.
"""

from __future__ import annotations

import contextlib
import socket
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


def _padding(payload: int) -> tuple[bytes, bytes]:
    """Return the padding's count and itself, for a payload of so many bytes beyond whole blocks."""
    count = _BLOCK - (1 + payload) % _BLOCK
    if count < _LEAST_PADDING:
        count += _BLOCK
    return bytes((count,)), bytes(count)


_PADDINGS = [_padding(payload) for payload in range(_BLOCK)]

Sink = Callable[[memoryview], None]


class _Keys:
    """One direction's AES-GCM state, RFC 5647: the nonce counts packets.

    Attributes:
        packets: how many these keys were used for.
        carried: how many bytes.
    """

    def __init__(self, engine: Any, nonce: bytes) -> None:
        self.engine = engine
        self.packets = 0
        self.carried = 0
        self._fixed = nonce[:4]
        self._first = int.from_bytes(nonce[4:], "big")

    def nonce(self, size: int) -> bytes:
        """Return the nonce of the next packet, which has `size` bytes."""
        number = (self._first + self.packets) & 0xFFFFFFFFFFFFFFFF
        self.packets += 1
        self.carried += size
        return self._fixed + number.to_bytes(8, "big")


class Packetizer(PlainPacketizer):  # type: ignore[misc]  # paramiko has no types
    """paramiko's packetizer with a way of its own for AES-GCM.

    Attributes:
        sinks: by a channel's number, who takes the data that comes on it; whoever is not here
            gets messages from the transport. Called from the transport's thread.
    """

    # OpenSSH's own limit for these ciphers, RFC 4344 allows 16 times as much. Each exchange stops
    # both directions for two round trips.
    REKEY_BYTES = 1 << 32

    def __init__(self, sock: Any) -> None:
        super().__init__(sock)
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
        self._exchange_asked = False

    # What paramiko's transport calls.

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
        """Send one message."""
        if self._keys_out is None:
            super().send_message(message)
        else:
            self.send_payloads([(message.asbytes(),)])

    def read_message(self) -> tuple[int, Any]:
        """Return the next message that is not for a sink, and its kind.

        Raises:
            EOFError: the connection ended.
            NeedRekeyException: new keys are due.
            paramiko.SSHException: a packet is mangled.
        """
        while self._keys_in is not None:
            payload = self._read_payload(self._keys_in)
            kind = payload[0]
            if kind == common.MSG_CHANNEL_DATA:
                sink = self.sinks.get(int.from_bytes(payload[1:5], "big"))
                if sink is not None:
                    sink(payload[9 : 9 + int.from_bytes(payload[5:9], "big")])
                    self._ask_for_exchange()
                    continue
            message = paramiko.Message(bytes(payload[1:]))
            message.seqno = (self._number_in() - 1) & _ALL
            return kind, message
        kind, message = super().read_message()
        return kind, message

    def send_payloads(self, payloads: Sequence[tuple[bytes | memoryview, ...]]) -> None:
        """Send several messages at once, each given in parts."""
        keys = self._keys_out
        if keys is None:
            for parts in payloads:
                super().send_message(paramiko.Message(b"".join(parts)))
            return
        with self._sending:
            try:
                if len(payloads) == 1:
                    self._socket.sendall(b"".join(self._seal(keys, payloads[0])))
                else:
                    self._write([piece for parts in payloads for piece in self._seal(keys, parts)])
            except OSError as error:
                raise EOFError("the connection broke") from error

    def _seal(self, keys: _Keys, parts: tuple[bytes | memoryview, ...]) -> tuple[bytes, bytes]:
        """Return a packet's length, which stays readable, and the rest, which does not."""
        if self._compress is not None:
            parts = (self._compress(b"".join(parts)),)
        # What pads need not be random: nothing is known of an AES-GCM text from parts of it.
        count, padding = _PADDINGS[sum(map(len, parts)) % _BLOCK]
        plain = b"".join((count, *parts, padding))
        length = len(plain).to_bytes(4, "big")
        if keys.carried > self.REKEY_BYTES:
            self._trigger_rekey()
        return length, keys.engine.encrypt(keys.nonce(len(plain)), plain, length)

    def _write(self, pieces: list[bytes]) -> None:
        while pieces:
            some, pieces = pieces[:_MOST_PIECES], pieces[_MOST_PIECES:]
            sent = self._socket.sendmsg(some) if _CAN_GATHER else 0
            if sent < sum(map(len, some)):
                self._socket.sendall(memoryview(b"".join(some))[sent:])

    def _read_payload(self, keys: _Keys) -> memoryview:
        if self._end - self._start < 4:
            self._fill(4)
        size = int.from_bytes(self._buffer[self._start : self._start + 4], "big")
        if size > _LARGEST_PACKET or size % _BLOCK:
            raise paramiko.SSHException(f"a packet claims to have {size} bytes")
        if self._end - self._start < 4 + size + _TAG:
            self._fill(4 + size + _TAG)
        begin = self._start + 4
        self._start = end = begin + size + _TAG
        sealed, length = self._buffer[begin:end], self._buffer[begin - 4 : begin]
        try:
            plain = memoryview(keys.engine.decrypt(keys.nonce(size), sealed, length))
        except InvalidTag as error:
            raise paramiko.SSHException("a packet is not what was sent") from error
        if keys.carried > self.REKEY_BYTES:
            self._trigger_rekey()
        payload = plain[1 : size - plain[0]]
        if self._decompress is not None:
            payload = memoryview(self._decompress(bytes(payload)))
        return payload

    def _fill(self, wanted: int) -> None:
        """Read until `wanted` bytes are there."""
        missing = wanted - (self._end - self._start)
        if self._start + wanted > len(self._buffer) or self._start == self._end:
            rest = bytes(self._buffer[self._start : self._end])
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        while missing > 0:
            try:
                count = self._socket.recv_into(self._buffer[self._end :])
            except OSError as error:
                raise EOFError("the connection broke") from error
            if not count:
                raise EOFError("the server closed the connection")
            self._end += count
            missing -= count

    def _number_in(self) -> int:
        """Return the next packet's sequence number: paramiko's count knows nothing of ours."""
        counted: int = self._Packetizer__sequence_number_in
        return (counted + (self._keys_in.packets if self._keys_in else 0)) & _ALL

    def _ask_for_exchange(self) -> None:
        """Let the transport renew the keys, once, when either direction has used them enough."""
        if self.need_rekey() and not self._exchange_asked:
            self._exchange_asked = True
            raise NeedRekeyException
