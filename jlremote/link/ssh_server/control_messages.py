"""Messages of the protocol by which programs share an ssh connection (OpenSSH's PROTOCOL.mux)."""

from __future__ import annotations

import os
import socket
import struct
import sys

VERSION = 4
HELLO, NEW_SESSION, ALIVE_CHECK = 0x00000001, 0x10000002, 0x10000004
DENIED, EXIT, ALIVE, OPENED = 0x80000002, 0x80000004, 0x80000005, 0x80000006
_NUMBER = struct.Struct(">I")
_MOST_BYTES = 4 << 20  # of one message


class ControlFields:
    """The numbers and strings of a message, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        (number,) = _NUMBER.unpack_from(self._data, self._at)
        self._at += _NUMBER.size
        return int(number)

    def string(self) -> bytes:
        size = self.number()
        self._at += size
        if self._at > len(self._data):
            raise struct.error("a string is longer than its message")
        return self._data[self._at - size : self._at]

    def strings(self) -> list[bytes]:
        """Return all that is left."""
        found = []
        while self._at < len(self._data):
            found.append(self.string())
        return found


class ControlMessages:
    """The messages of one client's socket, both ways."""

    def __init__(self, client: socket.socket) -> None:
        self._socket = client

    def receive(self) -> ControlFields | None:
        """Return the next message, `None` if the client has left; no byte more is read.

        Raises:
            struct.error: it is too long.
        """
        head = self._read(_NUMBER.size)
        if head is None:
            return None
        (size,) = _NUMBER.unpack(head)
        if size > _MOST_BYTES:
            raise struct.error(f"a message of {size} bytes")
        body = self._read(size)
        return None if body is None else ControlFields(body)

    def _read(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                return None
            data += piece
        return data

    def take_descriptors(self, count: int) -> list[int]:
        """Return descriptors that follow a message, each with a byte of its own.

        Raises:
            struct.error: one is missing.
        """
        if sys.platform == "win32":
            raise NotImplementedError
        taken: list[int] = []
        while len(taken) < count:
            came, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
            taken += descriptors
            if not came or not descriptors:
                for one in taken:
                    os.close(one)
                raise struct.error("a descriptor is missing")
        for one in taken:
            os.set_inheritable(one, False)
        return taken

    def send(self, *fields: int | bytes) -> None:
        packed = (
            _NUMBER.pack(each) if isinstance(each, int) else _NUMBER.pack(len(each)) + each
            for each in fields
        )
        body = b"".join(packed)
        self._socket.sendall(_NUMBER.pack(len(body)) + body)
