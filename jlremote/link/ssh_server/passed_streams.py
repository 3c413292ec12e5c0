"""The stdin, stdout and stderr that an `ssh` of this laptop passes to the link.

OpenSSH's client passes its own to another `ssh` that shares its connection, and waits for the
result; so no byte is encrypted twice on the laptop.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from jlremote.errors import JlrError, LinkLost
from jlremote.place.host.framing import FromMarker, ended_early
from jlremote.ssh.channels.session_channel import AT_ONCE, StdinPieces
from jlremote.ssh.interfaces import Stream
from jlremote.text import reason_of

# Input that waits for the host; below half of it reading goes on.
_MOST_INPUT = 4 << 20
_END_SECONDS = 1.0
_NOW: int = getattr(socket, "MSG_DONTWAIT", 0)  # not on Windows


class ReaderLeft(JlrError):
    """What reads the stdout that was passed has ended."""


def opened_anew(descriptors: Sequence[int]) -> tuple[int, ...] | None:
    """Return the three streams opened once more; `None` if one of them cannot be used.

    The link must never wait for them, and a flag set on the first would count for every program
    that has it. Only Linux opens a pipe again (`/proc/self/fd`). A terminal's keys are for the
    programs that belong to it.
    """
    if sys.platform != "linux" or os.isatty(descriptors[0]):
        return None
    opened: list[int] = []
    try:
        for one, direction in zip(
            descriptors, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True
        ):
            opened.append(_opened(one, direction))
    except OSError:
        close_all(opened)
        return None
    return tuple(opened)


def _opened(descriptor: int, direction: int) -> int:
    if sys.platform == "win32":
        raise NotImplementedError
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or os.isatty(descriptor):
        path = f"/proc/self/fd/{descriptor}"
        return os.open(path, direction | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    return os.dup(descriptor)


def close_all(descriptors: Sequence[int]) -> None:
    """Close descriptors, as far as they are open."""
    for one in descriptors:
        with suppress(OSError):
            os.close(one)


class PassedStreams:
    """The three streams, which it closes; `stdin` has what was read from the first.

    `marker` begins the script's output. What is `given` goes to the script before what is read.
    """

    def __init__(self, descriptors: Sequence[int], marker: str, given: bytes = b"") -> None:
        stdin, stdout, stderr = map(_End, descriptors)
        self._given = given
        self._stdin = stdin
        self._out = {"stdout": stdout, "stderr": stderr}
        self._marked = {name: FromMarker(marker) for name in self._out}
        self._changed = threading.Condition()
        self._stopped = False
        self._stop = os.pipe()  # its end wakes the threads that wait
        self.stdin = StdinPieces(self._taken)
        self._reader = threading.Thread(target=self._read, name="stdin", daemon=True)
        self._reader.start()

    def stop(self) -> None:
        """End all waiting: the client has gone, or is to end."""
        with self._changed:
            if not self._stopped:
                self._stopped = True
                os.close(self._stop[1])
            self._changed.notify()
        self.stdin.wake()

    def close(self) -> None:
        """Close the descriptors, once the script's thread is done with them."""
        self.stop()
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

    def output(self, stream: Stream, data: bytes) -> None:
        """Write output, in the script's thread.

        Raises:
            ReaderLeft: what reads stdout has gone.
            LinkLost: the client has.
            JlrError: it cannot be written, as on a full disk.
        """
        data = self._marked[stream].take(data)
        if self._marked["stdout"].begun:
            self.stdin.open(self._given)
        self._write(self._out[stream], data)

    def _taken(self, _pieces: int) -> None:
        if self.stdin.waiting < _MOST_INPUT // 2:
            with self._changed:
                self._changed.notify()

    def _read(self) -> None:
        try:
            self._read_all()
        finally:
            self._stdin.close()

    def _read_all(self) -> None:
        if sys.platform == "win32":
            raise NotImplementedError
        data = b"-"
        while data:
            if self.stdin.waiting >= _MOST_INPUT:
                with self._changed:
                    self._changed.wait_for(
                        lambda: self._stopped or self.stdin.waiting < _MOST_INPUT // 2
                    )
            if self._stopped or not self._is_ready(self._stdin, select.POLLIN):
                return
            try:
                data = self._stdin.read()
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            self.stdin.add(data)

    def _is_ready(self, end: _End, event: int) -> bool:
        if sys.platform == "win32":
            raise NotImplementedError
        if not end.never_waits:
            return not self._stopped
        poll = select.poll()
        poll.register(end.descriptor, event)
        poll.register(self._stop[0], 0)  # its end alone
        poll.poll()
        return not self._stopped

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
        is_socket = stat.S_ISSOCK(os.fstat(descriptor).st_mode)
        self.never_waits = is_socket or (
            sys.platform != "win32" and not os.get_blocking(descriptor)
        )
        self._socket = socket.socket(fileno=descriptor) if is_socket else None

    def read(self) -> bytes:
        if self._socket is not None:
            return self._socket.recv(AT_ONCE, _NOW)
        return os.read(self.descriptor, AT_ONCE)

    def write(self, data: memoryview) -> int:
        if self._socket is not None:
            return self._socket.send(data, _NOW)
        return os.write(self.descriptor, data)

    def close(self) -> None:
        os.close(self.descriptor) if self._socket is None else self._socket.close()
