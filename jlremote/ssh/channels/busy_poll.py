"""Polling for answers that come within microseconds, instead of sleeping until they do.

A thread that sleeps has to be woken, and Python is three times slower after that, because no cache
is warm: with a near host that is half of what a small message takes. So while small messages go to
and fro without a pause, the forward's thread stays awake. It polls the SSH connection as well,
which the transport's thread lends it: two threads that stay awake would wait for each other's
interpreter. On a line where an answer takes longer than `_QUICK`, and in every pause, all of them
sleep. Mounts do without: sshfs never pauses, and would pay with the cores that answer it.

While many connections talk at once the forward's thread sleeps, and the more it finds the more goes
in one call. It still reads the connection: one thread costs a quarter less than two, which would
wait for each other's interpreter with every message.
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
# Many connections are taken to talk at once for so many messages more …
_CROWD = 200
# … and until none came for so many seconds.
_PAUSE = 20e-3

_let_others_run: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


class BusyPoll:
    """Decides how long an `EventLoop` sleeps. All of it is for the loop's thread."""

    def __init__(self, watch: Callable[..., None], call: Callable[..., None]) -> None:
        self._watch = watch
        self._call = call
        self._reader: PacketReader | None = None
        self._view: socket | None = None
        self._last = 0.0
        self._quick = 0
        self._crowd = 0

    def sent(self, reader: PacketReader) -> None:
        """Note that a small message went over the connection of `reader`."""
        now = time.monotonic()
        self._quick = self._quick + 1 if now - self._last < _QUICK else min(self._quick, 0)
        self._last = now
        if self._crowd:
            self._crowd -= 1
        if self._quick >= _ENOUGH:
            reader.talked_at = now
            if self._reader is None:
                self._quick = 0
                reader.want(lambda: self._call(lambda: self._begin(reader)))

    def timeout(self) -> float | None:
        """Return how many seconds the loop may sleep: 0 for not at all, `None` for ever."""
        if self._reader is None:
            return None
        silent = time.monotonic() - self._last
        if silent > (_PAUSE if self._crowd else _QUICK):
            self.end()
            return None
        _let_others_run()  # the answer may come from a process that waits for this very core
        return _PAUSE if self._crowd else 0

    def crowded(self) -> None:
        """Note that many connections talk at once."""
        self._crowd = _CROWD

    def end(self) -> None:
        reader, view, self._reader, self._view = self._reader, self._view, None, None
        self._quick = 0
        if view is not None:
            self._watch(view, READ, 0, self._read_last)
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
        self._watch(view, 0, READ, self._read_last)

    def _read_last(self, _events: int) -> None:
        """Read after the local sockets, so that their data is already on its way to the host."""
        self._call(self._read)

    def _read(self) -> None:
        if self._reader is not None and not self._reader.poll():
            self.end()
            self._quick = -_SETBACK
