"""What all channels of one connection share: numbers, windows, and sshd's limit of sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

# OpenSSH's own first window; bytes.
FIRST_WINDOW = 2 << 20
LARGEST_PACKET = 32 << 10
_LEAST_WINDOW = 32 << 10
_LARGEST_WINDOW = 16 << 20
# More would fill the line's own buffers, behind which other channels' messages wait.
_BYTES_PER_SECOND = 160e6
# Bytes that all channels of a connection may hold for slow readers before windows stop growing.
BUFFER_LIMIT = 32 << 20
# paramiko numbers its own channels from 0 to 0xFFFFFF, and remembers each number for ever: ours
# are above, and are used again.
_FIRST_NUMBER = 1 << 24

# The most sessions that may last for hours: two of sshd's ten are left for short commands, which
# would else wait for no reason that they could name.
KEPT = 8
# Seconds until a refused session is asked for again: sshd counts one longer than it lasts.
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
# The same while a command runs, whose session will be free.
BUSY_PAUSE = 0.1


class ChannelRegistry:
    """The channels of one transport: their numbers, unread bytes, and round-trip time."""

    def __init__(self, transport: Any) -> None:
        self._lock = threading.Lock()
        self._channels: dict[int, Any] = {}
        self._free: list[int] = []
        self._unread = 0
        self._round_trip = 0.0  # seconds
        self.slots = SessionSlots()
        self._registered = transport._channels
        self._seen = transport.channels_seen

    @classmethod
    def of(cls, transport: Any) -> ChannelRegistry:
        shared: ChannelRegistry = vars(transport).setdefault("tunnel_channels", cls(transport))
        return shared

    def add(self, channel: Any) -> int:
        """Register a channel; return its number."""
        with self._lock:
            number = self._free.pop() if self._free else _FIRST_NUMBER + len(self._channels)
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
        """Return the next window, in bytes, of a channel whose reader took half of the last one.

        It grows until it covers the line, as TCP's own does; so an unread page holds a first window
        at most, and a download on a far line soon gets all it needs.
        """
        if self._unread > BUFFER_LIMIT:
            return FIRST_WINDOW
        line = max(FIRST_WINDOW, self._round_trip * _BYTES_PER_SECOND)
        return min(4 * window, round(min(line, _LARGEST_WINDOW)))


class SessionSlots:
    """The open session channels of a connection: sshd's `MaxSessions` counts all kinds of them.

    Only the server knows its limit, and says no more than "open failed" where that is reached: then
    preemptible sessions end, and a new one waits for a command's end.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: set[object] = set()
        self._short: dict[object, Callable[[], None] | None] = {}

    def keep(self, session: object) -> str:
        """Count a session that may last for hours; return why not, if too many are open."""
        with self._lock:
            if len(self._kept) >= KEPT:
                kinds = "terminals, logs, mounts or forwards into containers"
                return f"{KEPT} {kinds} are open over this connection already"
            self._kept.add(session)
            return ""

    def lend(self, session: object, preempt: Callable[[], None] | None) -> None:
        """Count an open session that ends soon, or by `preempt` when another needs its place.

        `preempt` is called in any thread.
        """
        with self._lock:
            self._short[session] = preempt

    def end(self, session: object) -> None:
        """Note the end of a session of any kind. Twice is fine."""
        with self._lock:
            self._kept.discard(session)
            self._short.pop(session, None)

    def make_room(self) -> bool:
        """End the preemptible sessions; return whether a command runs, which will end too."""
        with self._lock:
            for preempt in filter(None, self._short.values()):
                preempt()
            return None in self._short.values()
