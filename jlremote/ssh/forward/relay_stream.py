"""One connection of many that a relay carries."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from jlremote.ssh.forward.relay_program import CREDIT, DATA, END, WINDOW
from jlremote.ssh.forward.socket_bridge import SocketBridge


class Frames(Protocol):
    """The relay, as its streams know it."""

    def room(self) -> int:
        """Return how many bytes of DATA may be sent now."""
        ...

    def send(self, kind: int, number: int, count: int = 0, body: memoryview | None = None) -> None:
        """Send a frame."""
        ...

    def leave(self, stream: RelayStream) -> None:
        """Close a stream."""
        ...

    def call(self, action: Callable[[], None]) -> None:
        """Do `action` in the loop's thread."""
        ...


class RelayStream:
    """One connection through the relay; see `FarEnd`."""

    wire = None

    def __init__(self, relay: Frames, number: int, bridge: SocketBridge) -> None:
        self._relay = relay
        self.number = number
        self.bridge = bridge
        self._credit = WINDOW
        self._passed_on = 0
        self._lock = threading.Lock()

    def room(self) -> int:
        """See `FarEnd`."""
        return min(self._credit, self._relay.room())

    def send(self, data: memoryview) -> None:
        """See `FarEnd`."""
        with self._lock:
            self._credit -= len(data)
        self._relay.send(DATA, self.number, len(data), data)

    def send_end(self) -> None:
        """See `FarEnd`."""
        self._relay.send(END, self.number)

    def close(self) -> None:
        """See `FarEnd`."""
        self._relay.leave(self)

    def consumed(self, count: int) -> None:
        """See `FarEnd`."""
        with self._lock:
            before = self._passed_on
            self._passed_on += count
        if before < WINDOW // 4 <= before + count:
            self._relay.call(self._give_credit)

    def _give_credit(self) -> None:
        with self._lock:
            count, self._passed_on = self._passed_on, 0
        self._relay.send(CREDIT, self.number, count)

    # What the relay tells, in the transport's thread.

    def received(self, data: memoryview) -> None:
        """Take a piece of DATA."""
        taken = self.bridge.received(data)
        if taken:
            self.consumed(taken)

    def credited(self, count: int) -> None:
        """Take more credit."""
        with self._lock:
            had_none = self._credit <= 0
            self._credit += count
        if had_none:
            self.bridge.writable()
