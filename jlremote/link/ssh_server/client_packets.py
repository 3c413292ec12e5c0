"""SSH packets of a client, many at once, where asyncssh takes each by itself.

asyncssh sends an empty `IGNORE` packet before each one, sets up AES anew for each, writes each by
itself, and moves all that follows a packet that it reads. `ClientPackets` reads and writes the data
of channels; any other packet goes to asyncssh as it came, and with ciphers other than AES-GCM all
of them do. `tests/link/test_client_packets.py` lists the private names that this relies on.
"""

from __future__ import annotations

import struct
import time
from functools import partial
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from jlremote.ssh.transport.packet_format import BLOCK, DATA, LENGTH, PADDINGS, TAG, Keys

_MSG_DATA, _MSG_EXTENDED_DATA = 94, 95
_EXTENDED = struct.Struct(">BBIII")
_ALL = 0xFFFFFFFF
_NO_LIMIT = 1 << 62  # asyncssh counts the bytes of a key


class ClientPackets:
    """Reads and writes the packets of one client's connection, once the client has logged in."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._kept: bytes = b""  # the beginning of a packet
        self._read_by_asyncssh = connection.data_received
        self._add_channel = connection.add_channel
        connection.data_received = self.received
        connection.add_channel = self._added

    def _added(self, channel: Any) -> int:
        """Write what the client's window permits of a new channel at once."""
        channel._flush_send_buf = partial(self._flush, channel, channel._flush_send_buf)
        number: int = self._add_channel(channel)
        return number

    def _flush(self, channel: Any, flush_by_asyncssh: Any) -> None:
        keys = self._sending_keys()
        if keys is not None and channel._send_buf and channel._send_window:
            self._write(keys, channel)
        flush_by_asyncssh()  # the rest: key exchanges, pauses, and the end

    def _sending_keys(self) -> Keys | None:
        """Return the keys to write with, `None` where asyncssh has to."""
        connection = self._connection
        is_due = connection._rekey_bytes_sent >= connection._rekey_bytes or (
            connection._rekey_seconds and time.monotonic() >= connection._rekey_time
        )
        if is_due or not connection._kex_complete or connection._compressor:
            return None
        connection._send_encryption = sealing = _shared(connection._send_encryption)
        return sealing.keys if isinstance(sealing, _Sealing) else None

    def _write(self, keys: Keys, channel: Any) -> None:
        sealed: list[bytes] = []
        largest, peer, written = channel._send_pktsize, channel._send_chan, 0
        while channel._send_buf and channel._send_window:
            buffer, kind = channel._send_buf[0]
            count = min(len(buffer), channel._send_window)
            with memoryview(buffer) as data:
                for at in range(0, count, largest):
                    piece = data[at : min(at + largest, count)]
                    size = len(piece)
                    payload = size + (_EXTENDED if kind else DATA).size - 1
                    padding = PADDINGS[payload % BLOCK]
                    if kind:
                        numbers = (peer, kind, size)
                        head = _EXTENDED.pack(len(padding), _MSG_EXTENDED_DATA, *numbers)
                    else:
                        head = DATA.pack(len(padding), _MSG_DATA, peer, size)
                    plain = b"".join((head, piece, padding))
                    length = LENGTH.pack(len(plain))
                    sealed += (length, keys.encrypt(keys.nonce(len(plain)), plain, length))
                    written += len(plain)
                    piece.release()
            if count == len(buffer):
                del channel._send_buf[0]
            else:
                del buffer[:count]
            channel._send_buf_len -= count
            channel._send_window -= count
        connection = self._connection
        connection._send_seq = (connection._send_seq + len(sealed) // 2) & _ALL
        connection._rekey_bytes_sent += written
        connection._send(b"".join(sealed))

    def received(self, data: bytes, datatype: Any = None) -> None:
        """Take bytes of the client."""
        try:
            self._received(data, datatype)
        except Exception:  # noqa: BLE001 - a client may send anything
            self._connection.internal_error()

    def _received(self, data: bytes, datatype: Any) -> None:
        sealing = self._receiving()
        if sealing is None:
            self._read_by_asyncssh(data, datatype)
            return
        data, at, end = self._kept + data, 0, len(self._kept) + len(data)
        view = memoryview(data)
        while end - at >= LENGTH.size:
            (size,) = LENGTH.unpack_from(data, at)
            begin, stop = at + LENGTH.size, at + LENGTH.size + size + TAG
            if stop > end and size <= sealing.largest:
                break
            plain = sealing.open(view[begin:stop], view[at:begin])
            if plain is None or not self._is_taken(plain):
                self._kept = b""
                sealing.opened = plain
                self._read_by_asyncssh(data[at:stop], datatype)
                if self._connection._transport is None:
                    return
                if self._receiving() is not sealing:
                    self.received(data[stop:], datatype)
                    return
            at = stop
        self._kept = data[at:]

    def _receiving(self) -> _Sealing | None:
        """Return the cipher to read with, `None` where asyncssh has to, as during an exchange.

        What asyncssh has kept of the next packet is taken from it.
        """
        connection = self._connection
        connection._recv_encryption = sealing = _shared(connection._recv_encryption)
        waits = (connection._recv_pkthdr, connection._recv_packet)
        if not isinstance(sealing, _Sealing) or connection._decompressor:
            return None
        if connection._recv_handler not in waits:
            return None
        if connection._packet or connection._inpbuf:
            self._kept = connection._packet + connection._inpbuf
            connection._packet = connection._inpbuf = b""
            connection._recv_handler = connection._recv_pkthdr
        return sealing

    def _is_taken(self, plain: bytes) -> bool:
        """Pass a packet's data to its channel; return whether it was plain data."""
        if len(plain) < DATA.size or plain[1] != _MSG_DATA:
            return False
        padding, _, number, size = DATA.unpack_from(plain)
        channel = self._connection._channels.get(number)
        if channel is None or channel._recv_state != "open" or size > channel._recv_window:
            return False
        if size != len(plain) - padding - DATA.size:
            return False
        self._connection._recv_seq = (self._connection._recv_seq + 1) & _ALL
        channel._accept_data(plain[DATA.size : DATA.size + size])
        return True


class _Sealing:
    """AES-GCM of one direction as asyncssh uses it, with the nonces that both ways count."""

    largest = 256 * 1024 + 1024

    def __init__(self, cipher: Any) -> None:
        self.keys = Keys(AESGCM(cipher._key), cipher._iv, _NO_LIMIT, lambda: None)
        self.opened: bytes | None = None  # what asyncssh decrypts next

    def open(self, sealed: memoryview, length: memoryview) -> bytes | None:
        """Return a packet decrypted, `None` if it was changed."""
        try:
            plain: bytes = self.keys.decrypt(self.keys.nonce(len(sealed)), sealed, length)
        except InvalidTag:
            return None
        return plain

    # asyncssh's `Encryption`.

    def encrypt_packet(self, _seq: int, header: bytes, packet: bytes) -> tuple[bytes, bytes]:
        return header, self.keys.encrypt(self.keys.nonce(len(packet)), packet, header)

    def decrypt_header(self, _seq: int, first: bytes, count: int) -> tuple[bytes, bytes]:
        return first, first[:count]

    def decrypt_packet(
        self, _seq: int, first: bytes, rest: bytes, count: int, mac: bytes
    ) -> bytes | None:
        opened, self.opened = self.opened, None
        if opened is not None:
            return opened
        sealed = memoryview(first[count:] + rest + mac)
        return self.open(sealed, memoryview(first[:count]))


def _shared(encryption: Any) -> Any:
    """Return the cipher of a direction in the form that both ways use, if it is AES-GCM."""
    cipher = getattr(encryption, "_cipher", None)
    is_sealing = type(encryption).__name__ == "GCMEncryption"
    return _Sealing(cipher) if is_sealing else encryption
