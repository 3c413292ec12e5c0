"""The connections that a relay carries, and the frames that they send to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from jlremote.remote.relay import CREDIT, DATA, END, HEAD
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.forward.socket_bridge import SocketBridge


@dataclass(eq=False)
class FrameSender:
    """Sends frames over a channel; those that it has no room for wait."""

    _channel: TunnelChannel
    waiting: bytearray
    ready: bool = False  # whether the relay reads frames
    over: bool = False  # whether it has ended, or was told to

    def room(self) -> int:
        return 0 if self.waiting or not self.ready else self._channel.room()

    def send(self, kind: int, number: int, count: int = 0, body: memoryview | None = None) -> None:
        if self.over:
            return
        self.waiting += HEAD.pack(kind, number, count)
        if body is not None:
            self.waiting += body
        self.flush()

    def flush(self) -> None:
        """Send what the channel has room for."""
        room = self._channel.room()
        if not (self.ready and self.waiting and room > 0):
            return
        with memoryview(self.waiting) as waiting:
            self._channel.send(waiting[:room])
        del self.waiting[:room]


@dataclass(eq=False)
class RelayStream:
    """One connection through the relay; see `FarEnd`. `_leave` removes it from the relay.

    `window` is the number of bytes that may be on their way in each direction.
    """

    _frames: FrameSender
    number: int
    window: int
    bridge: SocketBridge
    _loop: EventLoop
    _leave: Callable[[RelayStream], None]
    to: str = ""  # its port or path there, for an error
    # Sums over the stream's life, each with one writer: the transport's thread and the loop's.
    announced: int = 0  # bytes of DATA that the relay has begun to send
    granted: int = 0
    _credit: int = 0
    _passed_on: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.granted = self._credit = self.window

    def room(self) -> int:
        return min(self._credit, self._frames.room())

    def send(self, data: memoryview) -> None:
        with self._lock:
            self._credit -= len(data)
        self._frames.send(DATA, self.number, len(data), data)

    def send_end(self) -> None:
        self._frames.send(END, self.number)

    def close(self) -> None:
        self._leave(self)

    def consumed(self, count: int) -> None:
        with self._lock:
            before = self._passed_on
            self._passed_on += count
        if before < self.window // 4 <= before + count:
            self._loop.call(self._give_credit)

    def _give_credit(self) -> None:
        with self._lock:
            count, self._passed_on = self._passed_on, 0
        self.granted += count
        self._frames.send(CREDIT, self.number, count)

    # Called by the relay, in the transport's thread.

    def received(self, data: memoryview) -> None:
        """Pass a piece of DATA on."""
        taken = self.bridge.received(data)
        if taken:
            self.consumed(taken)

    def credited(self, count: int) -> None:
        with self._lock:
            had_none = self._credit <= 0
            self._credit += count
        if had_none:
            self.bridge.writable()
