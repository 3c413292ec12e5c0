"""Whoever wants to know of a channel, and where what it does is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class EventLoop(Protocol):
    """What does things in a thread of its own, one after the other."""

    def call(self, action: Callable[[], None]) -> None:
        """Do `action` soon; from any thread, never blocks."""
        ...

    def call_later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do `action` after so many seconds; only from the loop's thread."""
        ...


class ChannelHandler(Protocol):
    """What wants to know of a channel. All is called from the transport's thread: do not block."""

    def opened(self) -> None:
        """Learn that the far end accepted the channel."""
        ...

    def refused(self, reason: str) -> None:
        """Learn that the far end does not want the channel; nothing else follows."""
        ...

    def received(self, data: memoryview) -> int:
        """Return how much of `data` was passed on; the rest is kept and told to `consumed`."""
        ...

    def ended(self) -> None:
        """Learn that the far end sends no more; it may still read."""
        ...

    def writable(self) -> None:
        """Learn that there is room again, after `room` was 0."""
        ...

    def closed(self) -> None:
        """Learn that the far end closed the channel; what came before may still be passed on."""
        ...

    def lost(self) -> None:
        """Learn that the connection is gone, and the channel with it."""
        ...
