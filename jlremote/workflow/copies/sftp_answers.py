"""What an SFTP server answers: attributes, names and errors."""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import dataclass

from jlremote.errors import JlrError

STATUS, HANDLE, DATA, NAME, ATTRIBUTES, EXTENDED_REPLY = 101, 102, 103, 104, 105, 201
OK, EOF, NO_SUCH_FILE = 0, 1, 2
_SIZE, _OWNER, _MODE, _TIMES, _EXTENDED = 1, 2, 4, 8, 1 << 31


class SftpRefused(JlrError):
    """The SFTP server refused a request; `code` is its own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class RemoteFacts:
    """The facts of a file there."""

    size: int
    mode: int
    modified: int  # seconds since the epoch

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


class Fields:
    """The fields of an answer, taken one after the other.

    Raises `JlrError` where it ends too early.
    """

    def __init__(self, body: memoryview) -> None:
        self._body = body

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._body)

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self._take(size), "big")

    def text(self) -> bytes:
        return bytes(self.data())

    def data(self) -> memoryview:
        return self._take(self.number())

    def facts(self) -> RemoteFacts:
        flags = self.number()
        size = self.number(8) if flags & _SIZE else 0
        if flags & _OWNER:
            self._take(8)
        mode = self.number() if flags & _MODE else 0
        modified = 0
        if flags & _TIMES:
            self._take(4)
            modified = self.number()
        if flags & _EXTENDED:
            for _ in range(self.number()):
                self.text()
                self.text()
        return RemoteFacts(size, mode, modified)

    def _take(self, size: int) -> memoryview:
        if size > len(self._body):
            raise JlrError("the SFTP server's answer ends too early")
        taken, self._body = self._body[:size], self._body[size:]
        return taken


def text(value: str | bytes) -> bytes:
    """Return a path or handle as a field."""
    data = os.fsencode(value) if isinstance(value, str) else value
    return struct.pack(">I", len(data)) + data


def attributes(*, mode: int | None = None, modified: int | None = None) -> bytes:
    """Return the attributes to set."""
    flags, body = 0, b""
    if mode is not None:
        flags |= _MODE
        body += struct.pack(">I", mode)
    if modified is not None:
        flags |= _TIMES
        body += struct.pack(">II", modified, modified)
    return struct.pack(">I", flags) + body
