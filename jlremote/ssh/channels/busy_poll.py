"""Polling for answers that come within microseconds, instead of sleeping until they do.

A thread that sleeps has to be woken, and Python is three times slower after that, because no cache
is warm: with a near host that is half of what a small message takes. So while small messages go to
and fro without a pause, the forward's thread stays awake. It polls the SSH connection as well,
which the transport's thread lends it: two threads that stay awake would wait for each other's
interpreter. On a line where an answer takes longer than `_QUICK`, and in every pause, all of them
sleep; so they do while many connections talk at once. Mounts do without: sshfs never pauses, and
would pay with the cores that answer it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from selectors import EVENT_READ as READ
from socket import socket

from jlremote.ssh.transport.packet_reader import PacketReader

# Seconds after which a message no longer belongs to the conversation.
_QUICK = 500e-6
# The number of messages that make a conversation …
_ENOUGH = 4
# … and how many more it takes after other traffic, such as the answers of new connections.
_SETBACK = 32

_let_others_run: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


class BusyPoll:
    """Decides when an `EventLoop` stays awake. All of it is for the loop's thread."""

    def __init__(self, watch: Callable[..., None], call: Callable[..., None]) -> None:
        self._watch = watch
        self._call = call
        self._reader: PacketReader | None = None
        self._view: socket | None = None
        self._last = 0.0
        self._quick = 0

    def sent(self, reader: PacketReader) -> None:
        """Note that a small message went over the connection of `reader`."""
        now = time.monotonic()
        self._quick = self._quick + 1 if now - self._last < _QUICK else min(self._quick, 0)
        self._last = now
        if self._quick >= _ENOUGH:
            reader.talked_at = now
            if self._reader is None:
                self._quick = 0
                reader.want(lambda: self._call(lambda: self._begin(reader)))

    def is_awake(self) -> bool:
        """Return whether the loop polls now instead of sleeping."""
        if self._reader is None:
            return False
        if time.monotonic() - self._last > _QUICK:
            self.end()
            return False
        _let_others_run()  # the answer may come from a process that waits for this very core
        return True

    def crowded(self) -> None:
        """Sleep for a while: the more messages come meanwhile, the more go in one call."""
        if self._reader is not None:
            self.end()
        self._quick = -_SETBACK

    def end(self) -> None:
        reader, view, self._reader, self._view = self._reader, self._view, None, None
        self._quick = 0
        if view is not None:
            self._watch(view, READ, 0, self._read)
            view.close()
        if reader is not None:
            reader.give_back()

    def _begin(self, reader: PacketReader) -> None:
        if self._reader is not None or not reader.borrow():
            return
        try:
            # Closing the connection frees its own descriptor's number for another socket.
            view = reader.socket.dup()
        except OSError:  # that is what has happened
            reader.give_back()
            return
        self._reader, self._view = reader, view
        self._last = time.monotonic()
        self._watch(view, 0, READ, self._read)

    def _read(self, _events: int) -> None:
        if self._reader is not None and not self._reader.poll():
            self.end()
            self._quick = -_SETBACK
