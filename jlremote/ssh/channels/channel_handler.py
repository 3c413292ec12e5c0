"""The events of a channel, as its owner handles them, and the thread that it sends from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ChannelLoop(Protocol):
    """The thread that a channel sends from: an `EventLoop`, or the thread of one script."""

    def call(self, action: Callable[[], None]) -> None:
        """Run `action` in that thread soon; from any thread, never blocks."""


class ChannelHandler(Protocol):
    """The owner of a channel. All is called from the transport's thread: do not block."""

    def opened(self) -> None:
        """Handle that the far end accepted the channel."""

    def refused(self, reason: str) -> None:
        """Handle that the far end refused the channel; no other event follows."""

    def received(self, data: memoryview) -> int:
        """Return how much of `data` was passed on; report the rest to `consumed` later."""

    def ended(self) -> None:
        """Handle that the far end sends no more; it may still read."""

    def writable(self) -> None:
        """Handle that there is room again, after `room` was 0."""

    def closed(self) -> None:
        """Handle that the far end closed the channel; earlier data may still be passed on."""

    def lost(self) -> None:
        """Handle that the connection is gone, and the channel with it."""
