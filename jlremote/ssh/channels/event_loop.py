"""One thread that serves many sockets: all the connections of a forward.

A thread or two for each connection, as sshtunnel and most examples have it, costs 2,000 threads
for 1,000 websockets, a poll interval each, and a hand-over between threads for every packet.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

Action = Callable[[], None]
Handler = Callable[[int], None]

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE

# Bytes that one connection may move before the others have their turn; also the most that is read
# from a local socket at once. Larger pieces are no faster, and delay others' small messages.
PIECE = 256 * 1024
_STOP_SECONDS = 5.0

_log = logging.getLogger(__name__)


class EventLoop:
    """Watches sockets, and runs the actions of other threads in its own thread."""

    def __init__(self) -> None:
        # epoll or kqueue where they are: select() ends at file descriptor 1023.
        self._selector = selectors.DefaultSelector()
        self._actions: deque[Action] = deque()
        self._timers: list[tuple[float, int, Action]] = []
        self._timer_numbers = itertools.count()
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        self._signalled = self._stopping = False
        self._thread: int | None = None
        self._started: threading.Thread | None = None
        self.piece = memoryview(bytearray(PIECE))  # for every handler while it runs
        self._selector.register(self._woken, READ, self._wake)

    def watch(self, sock: socket.socket, old: int, new: int, handler: Handler) -> None:
        """Change what `sock` is watched for from `old` to `new`; only in the loop's thread."""
        if old == new:
            return
        if not old:
            self._selector.register(sock, new, handler)
        elif not new:
            self._selector.unregister(sock)
        else:
            self._selector.modify(sock, new, handler)

    def call(self, action: Action) -> None:
        """Run `action` in the loop's thread soon; from any thread, never blocks."""
        self._actions.append(action)
        if self._signalled or threading.get_ident() == self._thread:
            return
        self._signalled = True
        try:
            self._waker.send(b"!")
        except OSError:  # a full pipe wakes the loop as well, and a closed one needs no waking
            return

    def call_later(self, seconds: float, action: Action) -> None:
        """Run `action` after `seconds`; only in the loop's thread."""
        when = time.monotonic() + seconds
        heapq.heappush(self._timers, (when, next(self._timer_numbers), action))

    def run(self) -> None:
        self._thread = threading.get_ident()
        while not self._stopping:
            try:
                self._turn()
            except Exception:  # noqa: BLE001 - one connection's error must not end the others
                _log.exception("a handler of the forward failed")

    def stop(self) -> None:
        """End `run` after its current turn; from any thread."""
        self._stopping = True
        self._signalled = False
        self.call(lambda: None)

    def close(self) -> None:
        """Close the loop's own file descriptors; after `run` has ended."""
        self._selector.close()
        self._waker.close()
        self._woken.close()
        self._actions.clear()
        self._timers.clear()

    def start_thread(self, name: str) -> None:
        """Run the loop in a new thread, until `end_thread`. Twice is fine."""
        if self._started is None:
            self._started = threading.Thread(target=self.run, name=name, daemon=True)
            self._started.start()

    def end_thread(self) -> None:
        """End the loop and its thread, if there is one. A handler that hangs keeps it."""
        self.stop()
        if self._started is not None:
            self._started.join(_STOP_SECONDS)
        if self._started is None or not self._started.is_alive():
            self.close()

    def _turn(self) -> None:
        due = self._timers[0][0] - time.monotonic() if self._timers else None
        timeout = 0 if self._actions else due
        for key, events in self._selector.select(timeout):
            key.data(events)
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()
        while self._actions:
            self._actions.popleft()()

    def _wake(self, _events: int) -> None:
        self._woken.recv(64)
        # Before the actions run: one that is added from now on signals again.
        self._signalled = False
