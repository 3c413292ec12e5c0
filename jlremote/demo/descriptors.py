"""File descriptors in an event loop: what a process reads and writes, pipes and terminals alike."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

_PIECE = 64 << 10
_MUCH = 1 << 20
END_OF_INPUT = b"\x04"  # what a terminal takes for an end of file, Ctrl-D


class Source:
    """Passes on what comes out of a descriptor, and closes it at its end.

    Args:
        descriptor: a pipe or terminal; ours from now on.
        deliver: is given each piece.
    """

    def __init__(self, descriptor: int, deliver: Callable[[bytes], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.last_moved = self._loop.time()
        self.resume()

    def pause(self) -> None:
        """Read no more for now."""
        if not self.ended.done():
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        """Read on."""
        self.last_moved = self._loop.time()
        if not self.ended.done():
            self._loop.add_reader(self._descriptor, self._read)

    def close(self) -> None:
        """Read nothing more. Twice is fine."""
        if not self.ended.done():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self.ended.set_result(None)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # a terminal that nobody has open any more
            data = b""
        self.last_moved = self._loop.time()
        if data:
            self._deliver(data)
        else:
            self.close()


class Sink:
    """Writes to a descriptor as fast as it is read, and says when to send no more for now.

    Args:
        descriptor: a pipe or terminal; ours from now on.
        pause: called when much is waiting.
        resume: called when that is written.
    """

    def __init__(
        self, descriptor: int, pause: Callable[[], None], resume: Callable[[], None]
    ) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._pause = pause
        self._resume = resume
        self._loop = asyncio.get_running_loop()
        self._terminal = os.isatty(descriptor)
        self._waiting = bytearray()
        self._ending = False
        self._closed = False

    def write(self, data: bytes) -> None:
        """Take `data`, which is thrown away if nobody reads any more."""
        if self._closed:
            return
        before = len(self._waiting)
        self._waiting += data
        if before <= _MUCH < len(self._waiting):
            self._pause()
        self._flush()

    def end(self) -> None:
        """Let the reader see an end of file once it has read all that was written."""
        if self._terminal:
            self.write(END_OF_INPUT)
            return
        self._ending = True
        self._watch()

    def close(self) -> None:
        """Write nothing more. Twice is fine."""
        if not self._closed:
            self._closed = True
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)

    def _flush(self) -> None:
        before = len(self._waiting)
        try:
            while self._waiting:
                del self._waiting[: os.write(self._descriptor, self._waiting[:_PIECE])]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more
            self._waiting.clear()
            self.close()
        if len(self._waiting) <= _MUCH < before:
            self._resume()
        self._watch()

    def _watch(self) -> None:
        if self._closed:
            return
        if self._waiting:
            self._loop.add_writer(self._descriptor, self._flush)
            return
        self._loop.remove_writer(self._descriptor)
        if self._ending:
            self.close()
