"""A part of a local file, which the kernel copies to the link's socket (sendfile)."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from jlremote.errors import JlrError
from jlremote.text import reason_of


class FilePart:
    """`size` bytes of a file from `offset` on; the file must stay open until they are sent.

    `hint` is what to do about a file that cannot be read.
    """

    def __init__(
        self, file: BinaryIO, path: str, offset: int, size: int, hint: str | None = None
    ) -> None:
        self._file = file
        self._path = path
        self._offset = offset
        self._size = size
        self._hint = hint

    def __len__(self) -> int:
        return self._size

    def read(self, done: int = 0) -> bytes:
        """Return the bytes, without the first `done`.

        Raises:
            JlrError: the file became shorter, or cannot be read.
        """
        left = self._size - done
        try:
            self._file.seek(self._offset + done)
            data = self._file.read(left)
        except OSError as error:
            reason = reason_of(error)
            raise JlrError(f"cannot read `{self._path}`: {reason}", hint=self._hint) from error
        if len(data) < left:
            raise JlrError(
                f"`{self._path}` became shorter while it was sent", hint="run the command again"
            )
        return data

    def send(self, descriptor: int) -> None:
        """Send the bytes to a socket.

        Raises:
            OSError: the other side is gone.
            JlrError: as `read`.
        """
        done = self._passed(descriptor)
        rest = memoryview(self.read(done) if done < self._size else b"")
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def _passed(self, descriptor: int) -> int:
        """Let the kernel pass on as much as it can; return how much that is."""
        done = 0
        if sys.platform == "linux":
            try:
                while done < self._size and (
                    count := os.sendfile(
                        descriptor, self._file.fileno(), self._offset + done, self._size - done
                    )
                ):
                    done += count
            except ConnectionError:
                raise
            except OSError:
                pass  # sendfile does not work here, or the file is unreadable; `read` tells which
        return done
