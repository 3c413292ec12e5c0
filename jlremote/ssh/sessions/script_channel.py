"""The session channel of one script, with what has arrived on it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.contract import Stream
from jlremote.ssh.sessions.pieces import Piece, Pieces


class ScriptChannel(TunnelChannel):
    """A session channel; one thread opens it, sends on it and takes its output.

    The transport's thread leaves here what comes, and sets `wake`. So this is the handler and the
    loop of the channel, too.

    Attributes:
        wake: set when something has come, or there is room to send more.
        answered: set once the server has granted or refused the session, or is gone.
        exit: set once `exit_status` is known, or will never be.
        exited_at: when it came, in seconds of the monotonic clock; output may follow it.
        is_granted: whether the server opened the session.
        is_accepted: whether it accepted the last request that wanted a reply.
        has_ended: whether the far end sends no more output.
        is_over: whether the far end has closed the channel, or is gone.
    """

    def __init__(self, transport: Any) -> None:
        super().__init__(transport, self, self)
        self.wake = threading.Event()
        self.answered = threading.Event()
        self.exit = threading.Event()
        self.exit_status: int | None = None
        self.exited_at = 0.0
        self.is_granted = self.is_accepted = self.has_ended = self.is_over = False
        self._output: Pieces[Stream] = Pieces()
        self._actions: deque[Callable[[], None]] = deque()

    def take(self) -> tuple[Stream, list[Piece]] | None:
        """Return output of one stream, `None` if there is none; report it to `consumed`."""
        return self._output.take()

    def run_actions(self) -> None:
        """Send what other threads left to this one."""
        while self._actions:
            self._actions.popleft()()

    # `ChannelLoop`.

    def call(self, action: Callable[[], None]) -> None:
        """Run `action` in the script's thread soon."""
        self._actions.append(action)
        self.wake.set()

    # `ChannelHandler`, in the transport's thread.

    def opened(self) -> None:
        self.is_granted = True
        self.answered.set()

    def refused(self, reason: str) -> None:
        """Note that the server opens no session; sshd says no more than "open failed"."""
        self._end()

    def received(self, data: memoryview) -> int:
        """Keep output, all of which needs `consumed`."""
        self._keep("stdout", data)
        return 0

    def _feed_extended(self, message: Any) -> None:
        message.get_int()
        data = message.get_binary()
        self._keep("stderr", data)
        self._count(len(data), len(data))

    def _keep(self, stream: Stream, data: Piece) -> None:
        self._output.add(stream, data)
        self.wake.set()

    def ended(self) -> None:
        self.has_ended = True
        self.wake.set()

    def writable(self) -> None:
        self.wake.set()

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
