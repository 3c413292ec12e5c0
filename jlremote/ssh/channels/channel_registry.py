"""The tunnel channels of one connection, which may belong to several forwards."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import paramiko
from paramiko import common

from jlremote.ssh.transport.tuning import FIRST_WINDOW, window_for

# What all channels of a connection may hold for slow readers before windows stop growing; bytes.
BUFFER_LIMIT = 32 << 20

# paramiko numbers its own channels from 0 to 0xFFFFFF, and remembers each number for ever: ours
# are above, and are used again.
_FIRST_NUMBER = 1 << 24
_LEAST_WINDOW = 32 << 10


class Refusable(Protocol):
    """A channel, as far as the registry knows it."""

    def refuse(self, reason: str) -> None:
        """Take the far end's no."""
        ...


class ChannelRegistry:
    """All tunnel channels of one transport: their numbers, what they hold, how far the host is.

    Attributes:
        sender: the number of the channel on which something was sent last, 0 for none.
        sent_at: when that was, seconds of the monotonic clock.
    """

    _tables: ClassVar[weakref.WeakKeyDictionary[Any, ChannelRegistry]] = weakref.WeakKeyDictionary()
    _tables_lock = threading.Lock()

    def __init__(self, transport: Any) -> None:
        # No channel itself: it knows the transport, which would then never be forgotten.
        self.sender = 0
        self.sent_at = 0.0
        self._lock = threading.Lock()
        self._channels: dict[int, Refusable] = {}
        self._free: list[int] = []
        self._unread = 0
        self._round_trip = 0.0
        self._registered = transport._channels
        self._seen = transport.channels_seen
        _dispatch_by_name(transport)
        _catch_refusals(transport, self)

    @classmethod
    def of(cls, transport: Any) -> ChannelRegistry:
        """Return the transport's registry; there is one, whatever the number of forwards."""
        with cls._tables_lock:
            registry = cls._tables.get(transport)
            if registry is None:
                registry = cls._tables[transport] = cls(transport)
            return registry

    def add(self, channel: Refusable) -> int:
        """Give `channel` a number."""
        with self._lock:
            dense = _FIRST_NUMBER + len(self._channels)
            number = self._free.pop() if self._free else dense
            self._channels[number] = channel
        self._seen[number] = True
        self._registered.put(number, channel)
        return number

    def remove(self, number: int) -> None:
        """Free a number; both sides have closed its channel."""
        self._registered.delete(number)
        with self._lock:
            if self._channels.pop(number, None) is not None:
                self._free.append(number)

    def get(self, number: int) -> Refusable | None:
        """Return the channel of a number."""
        return self._channels.get(number)

    def unread(self, change: int) -> None:
        """Count bytes that wait for slow readers."""
        if change:
            with self._lock:
                self._unread += change

    def first_window(self) -> int:
        """Return the window that a new channel begins with; smaller the more there are.

        What nobody reads is held here up to the window. So a thousand pages that hang at once hold
        150 MB and not 2 GB; one that is read has its whole window a round trip later.
        """
        return max(_LEAST_WINDOW, FIRST_WINDOW // (1 + len(self._channels) // 16))

    def answered(self, seconds: float) -> None:
        """Learn from the time that an opening took: the shortest is the round trip."""
        with self._lock:
            self._round_trip = min(self._round_trip or seconds, seconds)

    def grown(self, window: int, *, shared: bool) -> int:
        """Return the next window of a channel whose reader took half of the last one.

        It grows until it covers the line, as TCP's own does; so a page that nobody reads holds a
        first window at most, and a download on a far line soon gets all it needs. It shrinks while
        others use the connection.
        """
        if self._unread > BUFFER_LIMIT:
            return FIRST_WINDOW
        return min(4 * window, window_for(self._round_trip, shared=shared))


def _dispatch_by_name(transport: Any) -> None:
    """Let the transport call the methods of the channel it has, not always `paramiko.Channel`'s."""

    def calling(handler: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        name = handler.__name__
        if getattr(paramiko.Channel, name, None) is not handler:
            return handler  # the transport's own, which looks at the channel itself
        return lambda channel, message: getattr(channel, name)(message)

    handlers = transport._channel_handler_table.items()
    transport._channel_handler_table = {kind: calling(handler) for kind, handler in handlers}


def _catch_refusals(transport: Any, registry: ChannelRegistry) -> None:
    """Hand refusals to our channels; paramiko would log an error and overwrite the last one."""
    otherwise = transport._handler_table[common.MSG_CHANNEL_OPEN_FAILURE]

    def refused(message: Any) -> None:
        channel = registry.get(message.get_int())
        if channel is None:
            message.rewind()
            otherwise(message)
            return
        code, words = message.get_int(), message.get_text()
        if code == common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED:
            words = f"administratively prohibited: {words}"  # sshd itself says only "open failed"
        channel.refuse(words or f"code {code}")

    transport._handler_table[common.MSG_CHANNEL_OPEN_FAILURE] = refused
