"""What the tunnel channels of one connection share; they may belong to several forwards."""

from __future__ import annotations

import threading
from typing import Any

# OpenSSH's own first window; bytes.
FIRST_WINDOW = 2 << 20
LARGEST_PACKET = 32 << 10
_LARGEST_WINDOW = 16 << 20
# More would fill the line's own buffers, behind which other channels' messages wait.
_BYTES_PER_SECOND = 160e6

# Bytes that all channels of a connection may hold for slow readers before windows stop growing.
BUFFER_LIMIT = 32 << 20

# paramiko numbers its own channels from 0 to 0xFFFFFF, and remembers each number for ever: ours
# are above, and are used again.
_FIRST_NUMBER = 1 << 24
_LEAST_WINDOW = 32 << 10


class ChannelRegistry:
    """The tunnel channels of one transport: their numbers, unread bytes, and round-trip time."""

    def __init__(self, transport: Any) -> None:
        self._lock = threading.Lock()
        self._channels: dict[int, Any] = {}
        self._free: list[int] = []
        self._unread = 0
        self._round_trip = 0.0
        self._registered = transport._channels
        self._seen = transport.channels_seen

    @classmethod
    def of(cls, transport: Any) -> ChannelRegistry:
        """Return the registry of a connection; all of its forwards share one."""
        shared: ChannelRegistry = vars(transport).setdefault("tunnel_channels", cls(transport))
        return shared

    def add(self, channel: Any) -> int:
        """Register a channel; return its number."""
        with self._lock:
            dense = _FIRST_NUMBER + len(self._channels)
            number = self._free.pop() if self._free else dense
            self._channels[number] = channel
        self._seen[number] = True
        self._registered.put(number, channel)
        return number

    def remove(self, number: int) -> None:
        """Free the number of a channel that both sides have closed."""
        self._registered.delete(number)
        with self._lock:
            if self._channels.pop(number, None) is not None:
                self._free.append(number)

    def unread(self, change: int) -> None:
        """Count bytes that wait for slow readers."""
        if change:
            with self._lock:
                self._unread += change

    def first_window(self) -> int:
        """Return the first window of a new channel; smaller the more channels there are.

        Unread data is held here up to the window. So a thousand pages that hang at once hold 150 MB
        and not 2 GB; one that is read has its whole window a round trip later.
        """
        return max(_LEAST_WINDOW, FIRST_WINDOW // (1 + len(self._channels) // 16))

    def answered(self, seconds: float) -> None:
        """Note how long an opening took: the shortest time is the round trip."""
        with self._lock:
            self._round_trip = min(self._round_trip or seconds, seconds)

    def grown(self, window: int) -> int:
        """Return the next window of a channel whose reader took half of the last one.

        It grows until it covers the line, as TCP's own does; so an unread page holds a first window
        at most, and a download on a far line soon gets all it needs.
        """
        if self._unread > BUFFER_LIMIT:
            return FIRST_WINDOW
        return min(4 * window, window_for(self._round_trip))


def window_for(round_trip: float) -> int:
    """Return the receive window in bytes of a channel whose reader keeps up.

    `round_trip` is in seconds.
    """
    return round(min(max(FIRST_WINDOW, round_trip * _BYTES_PER_SECOND), _LARGEST_WINDOW))
