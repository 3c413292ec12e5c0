"""Connections into places and out of them, each joined with a local socket.

What the SSH server itself reaches takes a channel of its own; for anything else, and to listen, one
relay carries all connections.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

from jlremote.place.host.addresses import Target
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.container_relay import Listens, Relay, Where, address_of
from jlremote.ssh.forward.socket_bridge import SocketBridge
from jlremote.ssh.wire_format import opening

# A relay that carries nothing keeps its session for so long: editors connect again and again.
_IDLE_SECONDS = 20.0

# Called once: with `None` when bytes may flow, or with the reason of a refusal.
Answered = Callable[[str | None], None]


class FarEnds:
    """Opens far ends for bridges: channels of the SSH server, or streams of one relay."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._relay: Relay | None = None

    def connect(self, connection: Connection, target: Target, bridge: SocketBridge) -> None:
        """Join a bridge with a new far end, which will open or refuse."""
        if target.relay is not None:
            self.relay(connection, target).connect(bridge, target)
            return
        channel = TunnelChannel(connection.transport, bridge, self._loop.call)
        bridge.join(channel)
        channel.ask(*opening(address_of(target)))

    def relay(self, connection: Connection, target: Target) -> Relay:
        """Return the relay to a target; another one ends with its last stream."""
        if self._relay is not None:
            if self._relay.leads_to(connection.transport, target):
                return self._relay
            self._relay.retire()
        self._relay = Relay(connection, target, self._loop)
        return self._relay

    def retire(self) -> None:
        """End the relay with its last stream."""
        if self._relay is not None:
            self._relay.retire()

    def retire_idle(self) -> None:
        """End the relay soon if nothing uses it then."""
        if self._relay is not None and self._relay.unused:
            self._loop.call_later(_IDLE_SECONDS, self._retire_unused)

    def _retire_unused(self) -> None:
        if self._relay is not None and self._relay.unused:
            self._relay.retire()


class PlaceStreams:
    """All connections of a place; `relay` is the argv that runs a relay there.

    With `direct`, connections are the SSH server's own. Methods are for any thread.
    """

    def __init__(self, relay: tuple[str, ...], loop: EventLoop, *, direct: bool) -> None:
        self._relay = relay
        self._direct = direct
        self._loop = loop
        self._far_ends = FarEnds(loop)

    def connect(
        self, connection: Connection, to: Where, local: socket.socket, answered: Answered
    ) -> None:
        """Join `local`, which is closed at the end, with a host and port or a path."""
        local.setblocking(False)
        target = Target("", 0, path=str(to[0])) if len(to) == 1 else Target(str(to[0]), int(to[1]))
        target = replace(target, relay=None if self._direct else self._relay)
        bridge = SocketBridge(local, self._loop, _StreamOwner(answered, self._far_ends.retire_idle))
        self._loop.call(lambda: self._far_ends.connect(connection, target, bridge))

    def listen(
        self,
        connection: Connection,
        where: Where,
        listens: Listens,
        accepted: Callable[[socket.socket], None],
    ) -> Callable[[], None]:
        """Listen on a port of the place's loopback, or at a path; return what stops that.

        `listens` gets the port (0 for a path), and `None` where nothing listens, or no more.
        `accepted` gets the near end of each connection; those go on after the stop. All three are
        called in any thread.
        """
        opened: list[tuple[Relay, int]] = []

        def begin() -> None:
            relay = self._far_ends.relay(connection, Target("", 0, self._relay))

            def accept(number: int) -> None:
                self._loop.call(lambda: accepted(self._near_end(relay, number)))

            opened.append((relay, relay.listen(where, listens, accept)))

        def end() -> None:
            for relay, number in opened:
                relay.unlisten(number)

        self._loop.call(begin)
        return lambda: self._loop.call(end)

    def _near_end(self, relay: Relay, number: int) -> socket.socket:
        near, far = socket.socketpair()
        far.setblocking(False)
        bridge = SocketBridge(far, self._loop, _StreamOwner(lambda _: None, lambda: None))
        relay.adopt(number, bridge)
        bridge.start()
        return near


@dataclass(frozen=True)
class _StreamOwner:
    """The owner of one bridge; see `BridgeOwner`."""

    _answered: Answered
    _finished: Callable[[], None]

    def accepted(self, _bridge: SocketBridge) -> bool:
        self._answered(None)
        return True

    def refused(self, _bridge: SocketBridge, reason: str) -> None:
        self._answered(reason)

    def failed(self, bridge: SocketBridge) -> None:
        self._answered("the connection to the host broke")
        bridge.close()

    def finished(self, _bridge: SocketBridge) -> None:
        self._finished()
