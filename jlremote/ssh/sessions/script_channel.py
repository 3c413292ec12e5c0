"""The session channel of one script, with what has arrived on it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.contract import Stream, WriteNow

# Bytes of output that are passed on at once.
_PIECE = 256 << 10
# A packet of so many bytes is part of much output.
_BULK = 8 << 10


class ScriptChannel(TunnelChannel):
    """A session channel; one thread opens it, sends on it and takes its output.

    The transport's thread writes what comes with `write_now`, or leaves it here and sets `wake`. So
    this is the handler and the loop of the channel, too.

    Attributes:
        wake: set when something has come.
        on_room: called when there is room to send more; sets `wake` until a sender replaces it.
        answered: set once the server has granted or refused the session, or is gone.
        exit: set once `exit_status` is known, or will never be.
        exited_at: when it came, in seconds of the monotonic clock; output may follow it.
        written_at: when output was written after that.
        is_granted: whether the server opened the session.
        is_accepted: whether it accepted the last request that wanted a reply.
        has_ended: whether the far end sends no more output.
        is_over: whether the far end has closed the channel, or is gone.
    """

    may_be_polled = False
    joins_packets = True
    turn_end: list[Callable[[], None]] | None = None

    def __init__(self, transport: Any, write_now: WriteNow | None = None) -> None:
        super().__init__(transport, self, self)
        self.wake = threading.Event()
        self.on_room: Callable[[], None] = self.wake.set
        self.answered = threading.Event()
        self.exit = threading.Event()
        self.exit_status: int | None = None
        self.exited_at = self.written_at = 0.0
        self.is_granted = self.is_accepted = self.has_ended = self.is_over = False
        self._write_now = write_now
        self._output: deque[tuple[Stream, memoryview]] = deque()
        self._is_passing_on = False  # whether the script's thread has output that it took from here
        self._actions: deque[Callable[[], None]] = deque()
        self._later: list[tuple[float, Callable[[], None]]] = []

    def take(self) -> tuple[Stream, bytes] | None:
        """Return the next piece of output, `None` if there is none; report it to `consumed`."""
        # Set before a look: what comes after it is left here until the next one.
        self._is_passing_on = True
        if not self._output:
            self._is_passing_on = False
            return None
        stream, data = self._output.popleft()
        pieces, size = [data], len(data)
        while size < _PIECE and self._output and self._output[0][0] == stream:
            _, data = self._output.popleft()
            pieces.append(data)
            size += len(data)
        return stream, b"".join(pieces)

    def run_actions(self) -> None:
        """Send what other threads left to this one."""
        now = time.monotonic()
        due = [action for when, action in self._later if when <= now]
        self._later = [(when, action) for when, action in self._later if when > now]
        for action in due:
            action()
        while self._actions:
            self._actions.popleft()()

    def wait(self, seconds: float) -> None:
        """Wait until something has come, or is to be sent."""
        if self._later:
            soonest = min(when for when, _ in self._later)
            seconds = min(seconds, max(0.0, soonest - time.monotonic()))
        self.wake.wait(seconds)

    # `ChannelLoop`.

    def call(self, action: Callable[[], None]) -> None:
        """Run `action` in the script's thread soon."""
        self._actions.append(action)
        self.wake.set()

    def call_later(self, seconds: float, action: Callable[[], None]) -> None:
        """Run `action` in the script's thread after `seconds`."""
        self._later.append((time.monotonic() + seconds, action))

    # `ChannelHandler`, in the transport's thread.

    def opened(self) -> None:
        self.is_granted = True
        self.answered.set()

    def refused(self, reason: str) -> None:
        """Note that the server opens no session; sshd says no more than "open failed"."""
        self._end()

    def received(self, data: memoryview) -> int:
        """Write output, or keep it; return how much needs no `consumed`."""
        return self._pass_on("stdout", data)

    def _feed_extended(self, message: Any) -> None:
        message.get_int()
        data = memoryview(message.get_binary())
        self._count(len(data), len(data) - self._pass_on("stderr", data))

    def _pass_on(self, stream: Stream, data: memoryview) -> int:
        rest = None
        if self._write_now is not None and not (self._output or self._is_passing_on):
            rest = self._write_now(stream, data)
            if self.exit.is_set():
                self.written_at = time.monotonic()
        if rest is not None and not rest:
            if len(data) >= _BULK and not self._sharing.is_shared():
                self._reader.is_unhurried = True
            return len(data)
        written = 0
        if rest is not None:
            # What its message has beyond the data counts as data that was written already.
            stream, written, data = "rest", len(data) - len(rest), rest
        self._output.append((stream, data))
        if not self.wake.is_set():
            self.wake.set()
        return written

    def ended(self) -> None:
        self.has_ended = True
        self.wake.set()

    def writable(self) -> None:
        self.on_room()

    def exited(self, status: int) -> None:
        self.exit_status = status
        self.exited_at = time.monotonic()
        self.exit.set()
        self.wake.set()

    def closed(self) -> None:
        self._end()

    def lost(self) -> None:
        self._end()

    def _end(self) -> None:
        self.is_over = True
        for event in (self.answered, self.exit, self.wake):
            event.set()

    def _request_success(self, _message: Any) -> None:
        self.is_accepted = True

    def _request_failed(self, _message: Any) -> None:
        self._end()
