"""Looking again and again for what comes within microseconds, instead of sleeping until it does.

A thread that sleeps has to be woken, and Python is three times slower after that, because no cache
is warm: with a near host that is half of what a small message takes. So while small messages go to
and fro without a pause, the forward's thread stays awake. It looks at the SSH connection as well,
which the transport's thread lends it: two that stay awake would only wait for each other. On a
line where an answer takes longer than `_QUICK`, and in every pause, all of them sleep.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from selectors import EVENT_READ as READ
from socket import socket
from typing import Protocol

# Seconds: what comes later after a message than this is no part of a conversation.
_QUICK = 500e-6
# So many messages make a conversation.
_ENOUGH = 4
# So many more it takes where something else came, such as the answers of new connections.
_SETBACK = 32

_let_others_run: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


class Wire(Protocol):
    """A connection that can be read without waiting by whoever waits for its answers.

    Attributes:
        socket: what to look at.
        talked_at: when a message of a conversation went over it last, seconds of the monotonic
            clock; downloads beside it give way.
    """

    socket: socket
    talked_at: float

    def want(self, offer: Callable[[], None]) -> None:
        """Ask to read it; `offer` is called when that may begin, from another thread."""
        ...

    def borrow(self) -> bool:
        """Begin to read it, if that may still begin; `give_back` must follow then."""
        ...

    def poll(self) -> bool:
        """Pass on what has come; whether what comes next is for us too."""
        ...

    def give_back(self) -> None:
        """End reading it."""
        ...


class Watcher(Protocol):
    """A loop, as far as it is used here."""

    def watch(self, sock: socket, old: int, new: int, handler: Callable[[int], None]) -> None:
        """Change what `sock` is watched for."""
        ...

    def call(self, action: Callable[[], None]) -> None:
        """Do `action` in the loop's thread; from any thread."""
        ...


class BusyPoll:
    """Decides when a loop stays awake. All of it is for the loop's thread."""

    def __init__(self, loop: Watcher) -> None:
        self._loop = loop
        self._wire: Wire | None = None
        self._view: socket | None = None
        self._last = 0.0
        self._quick = 0

    def sent(self, wire: Wire) -> None:
        """Learn that a small message went over `wire`."""
        now = time.monotonic()
        self._quick = self._quick + 1 if now - self._last < _QUICK else min(self._quick, 0)
        self._last = now
        if self._quick >= _ENOUGH:
            wire.talked_at = now
            if self._wire is None:
                self._quick = 0
                wire.want(lambda: self._loop.call(lambda: self._begin(wire)))

    def is_awake(self) -> bool:
        """Whether the loop is to look now, and not to sleep."""
        if self._wire is None:
            return False
        if time.monotonic() - self._last > _QUICK:
            self.end()
            return False
        _let_others_run()  # the answer may come from a process that waits for this very core
        return True

    def end(self) -> None:
        """Go to sleep again."""
        wire, view, self._wire, self._view = self._wire, self._view, None, None
        self._quick = 0
        if view is not None:
            self._loop.watch(view, READ, 0, self._read)
            view.close()
        if wire is not None:
            wire.give_back()

    def _begin(self, wire: Wire) -> None:
        if self._wire is not None or not wire.borrow():
            return
        try:
            # Whoever closes the connection frees its own descriptor's number for another socket.
            view = wire.socket.dup()
        except OSError:  # that is what has happened
            wire.give_back()
            return
        self._wire, self._view = wire, view
        self._last = time.monotonic()
        self._loop.watch(view, 0, READ, self._read)

    def _read(self, _events: int) -> None:
        if self._wire is not None and not self._wire.poll():
            self.end()
            self._quick = -_SETBACK
