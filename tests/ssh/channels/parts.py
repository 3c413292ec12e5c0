"""A transport in memory, and a handler that notes the events of a channel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from paramiko.transport import ChannelMap


class Handler:
    """Notes the events of a channel; takes `takes` bytes of each piece of data."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.data = b""
        self.takes = 1 << 30

    def opened(self) -> None:
        self.events.append("opened")

    def refused(self, reason: str) -> None:
        self.events.append(f"refused: {reason}")

    def received(self, data: memoryview) -> int:
        taken = min(len(data), self.takes)
        self.data += bytes(data[:taken])
        return taken

    def ended(self) -> None:
        self.events.append("ended")

    def writable(self) -> None:
        self.events.append("writable")

    def closed(self) -> None:
        self.events.append("closed")

    def lost(self) -> None:
        self.events.append("lost")


class Transport:
    """A transport that notes the messages of channels, and runs a loop's actions on demand."""

    def __init__(self) -> None:
        self.packetizer = self.reader = self
        self.sinks: dict[int, Callable[[memoryview], None]] = {}
        self.windows: dict[int, Callable[[int], None]] = {}
        self.sent: list[bytes] = []
        self.active = True
        self._channels = ChannelMap()
        self.channels_seen: dict[int, bool] = {}
        self.actions: deque[Callable[[], None]] = deque()

    def is_active(self) -> bool:
        return self.active

    def close(self) -> None:
        self.active = False

    def send_payloads(self, payloads: Sequence[tuple[bytes, ...]]) -> bool:
        self.sent += [b"".join(parts) for parts in payloads]
        return True

    def reply(self, answer: bytes) -> None:
        self.sent.append(answer)

    def call(self, action: Callable[[], None]) -> None:
        self.actions.append(action)

    def run(self) -> None:
        while self.actions:
            self.actions.popleft()()
