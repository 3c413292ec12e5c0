"""A command's own stdin, stdout and stderr, which the link reads and writes in its place.

A command that only passes bytes on would cost a copy, and two processes that wake each other up for
each piece. So on Linux it passes its own descriptors, which wait for nothing, and waits for the
result.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from jlremote.errors import JlrError, LinkLost
from jlremote.host.framing import FromMarker, ended_early
from jlremote.link.wire.protocol import ReaderLeft
from jlremote.ssh.contract import Stream
from jlremote.text import reason_of

# Bytes that are read from stdin, and sent to the host, at once.
_AT_ONCE = 256 << 10
# Input that waits for the host; below half of it reading goes on.
_MOST_INPUT = 4 << 20
_END_SECONDS = 1.0
_NOW: int = getattr(socket, "MSG_DONTWAIT", 0)  # not on Windows


class PassedStreams:
    """The three streams; as `Stdin` what was read from the first.

    `marker` begins the script's output. `began` is called once some came after it. What is `given`
    goes to the script before what is read.
    """

    def __init__(
        self,
        descriptors: Sequence[int],
        marker: str,
        began: Callable[[], None],
        given: bytes = b"",
    ) -> None:
        stdin, stdout, stderr = map(_End, descriptors)
        self._stdin = stdin
        self._out = {"stdout": stdout, "stderr": stderr}
        self._marked = {name: FromMarker(marker) for name in self._out}
        self._began = began
        self._given = given
        self._has_begun = False
        self._pieces: deque[bytes] = deque()
        self._waiting = 0  # bytes of input
        self._changed = threading.Condition()
        self._stopped = False
        self._stop = os.pipe()  # its end wakes the threads that wait
        self.wake: Callable[[], None] = lambda: None
        # The connection's own thread may bring output until its channel is closed there.
        self._writing = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="stdin", daemon=True)
        self._reader.start()

    def stop(self) -> None:
        """End all waiting: the command has gone, or is to end."""
        with self._changed:
            if not self._stopped:
                self._stopped = True
                os.close(self._stop[1])
            self._changed.notify()
        self.wake()

    def close(self) -> None:
        """Close the descriptors, once the script's thread is done with them."""
        self.stop()
        with self._writing:
            for one in self._out.values():
                one.close()
        self._reader.join(_END_SECONDS)
        if not self._reader.is_alive():  # else it waits for a file system
            os.close(self._stop[0])

    def check_begun(self) -> None:
        """Check that the script has begun.

        Raises:
            NoShell: the shell ended before that.
        """
        if not self._marked["stdout"].begun:
            raise ended_early(*(stream.noise for stream in self._marked.values()))

    def tell(self, text: str) -> None:
        """Write a line for the person to stderr, if it still takes one."""
        with suppress(JlrError):
            self._write(self._out["stderr"], text.encode("utf-8", "replace"))

    # `Stdin`.

    def on_ready(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def take(self) -> bytes | None:
        """Return input that has come, once the host's shell has read its script."""
        with self._changed:
            if not self._pieces:
                return None
            pieces, size = [self._pieces.popleft()], 0
            # An empty piece is the end, and goes by itself.
            while pieces[-1] and size < _AT_ONCE and self._pieces and self._pieces[0]:
                size += len(pieces[-1])
                pieces.append(self._pieces.popleft())
            piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            waited, self._waiting = self._waiting, self._waiting - len(piece)
            if waited >= _MOST_INPUT // 2 > self._waiting:
                self._changed.notify()
            return piece

    def _read(self) -> None:
        """Read stdin to its end and close it; in a thread of its own."""
        try:
            self._read_all()
        finally:
            self._stdin.close()

    def _read_all(self) -> None:
        if sys.platform == "win32":
            raise NotImplementedError
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._marked["stdout"].begun)
            self._pieces.extend([self._given] if self._given else [])
            self._waiting += len(self._given)
        self.wake()
        data = b"-"
        while data:
            with self._changed:
                if self._waiting >= _MOST_INPUT:
                    self._changed.wait_for(self._has_room)
            if self._stopped or not self._is_ready(self._stdin, select.POLLIN):
                return
            try:
                data = self._stdin.read()
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            with self._changed:
                self._pieces.append(data)
                self._waiting += len(data)
            self.wake()

    def _has_room(self) -> bool:
        return self._stopped or self._waiting < _MOST_INPUT // 2

    def _is_ready(self, end: _End, event: int) -> bool:
        """Wait until an end can be read or written; return `False` if this was stopped."""
        if sys.platform == "win32":
            raise NotImplementedError
        if not end.never_waits:
            return not self._stopped
        poll = select.poll()
        poll.register(end.descriptor, event)
        poll.register(self._stop[0], 0)  # its end alone
        poll.poll()
        return not self._stopped

    # `Output` and `WriteNow`.

    def output(self, stream: Stream, data: bytes) -> None:
        """Write output, in the script's thread.

        Raises:
            ReaderLeft: what reads stdout has gone.
            LinkLost: the command has.
            JlrError: it cannot be written, as on a full disk.
        """
        if stream == "rest":  # of what `write_now` has begun
            self._write(self._out["stdout"], data)
            return
        marked = self._marked[stream]
        had_begun = marked.begun
        data = marked.take(data)
        if marked.begun and not had_begun and stream == "stdout":
            with self._changed:
                self._changed.notify()
        if data:
            if not self._has_begun:
                self._has_begun = True
                self._began()
            self._write(self._out[stream], data)

    def write_now(self, stream: Stream, data: memoryview) -> memoryview | None:
        """Write what stdout takes without waiting; return the rest, `None` if nothing was."""
        stdout = self._out["stdout"]
        if stream != "stdout" or not (self._has_begun and stdout.never_waits):
            return None
        with self._writing:
            try:
                return None if self._stopped else data[stdout.write(data) :]
            except OSError:  # it is full, or gone, which `output` finds
                return None

    def _write(self, end: _End, data: bytes) -> None:
        if sys.platform == "win32":
            raise NotImplementedError
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[end.write(rest) :]
            except BlockingIOError:
                if not self._is_ready(end, select.POLLOUT):
                    raise LinkLost("the command has ended") from None
            except BrokenPipeError as gone:
                raise ReaderLeft("what reads the output has ended") from gone
            except OSError as failure:
                raise JlrError(f"cannot write the output: {reason_of(failure)}") from failure


class _End:
    """One descriptor. A file or device may wait for its disk, and `poll` knows nothing of that."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        mode = os.fstat(descriptor).st_mode
        is_socket = stat.S_ISSOCK(mode)
        self.never_waits = is_socket or not _may_wait(descriptor)
        self._socket = socket.socket(fileno=descriptor) if is_socket else None

    def read(self) -> bytes:
        if self._socket is not None:
            return self._socket.recv(_AT_ONCE, _NOW)
        return os.read(self.descriptor, _AT_ONCE)

    def write(self, data: memoryview) -> int:
        if self._socket is not None:
            return self._socket.send(data, _NOW)
        return os.write(self.descriptor, data)

    def close(self) -> None:
        os.close(self.descriptor) if self._socket is None else self._socket.close()


def _may_wait(descriptor: int) -> bool:
    if sys.platform == "win32":
        raise NotImplementedError
    return os.get_blocking(descriptor)
