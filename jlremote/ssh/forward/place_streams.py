"""Connections into one place and out of it, each joined with a local socket.

A place without a network of its own is reached by the SSH server itself; in any other, and to
listen, one relay does it for all connections.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence

from jlremote.host.addresses import Target
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.contract import Connection
from jlremote.ssh.forward.relay import Relay
from jlremote.ssh.forward.socket_bridge import SocketBridge
from jlremote.ssh.wire_format import STREAMLOCAL, direct_streamlocal, direct_tcpip

# A relay that carries nothing keeps its session for so long: editors connect again and again.
_IDLE_SECONDS = 20.0
_NOWHERE = ("127.0.0.1", 0)

Where = Sequence[str | int | bool]
# Called once: with `None` when bytes may flow, or with the reason of a refusal.
Answered = Callable[[str | None], None]


class PlaceStreams:
    """All connections of a place; `relay` is the argv that runs a relay there.

    With `direct`, connections are the SSH server's own. Methods are for any thread.
    """

    def __init__(self, relay: tuple[str, ...], loop: EventLoop, *, direct: bool) -> None:
        self._target = Target("", 0, relay)
        self._direct = direct
        self._loop = loop
        self._relay: Relay | None = None

    def connect(
        self, connection: Connection, to: Where, local: socket.socket, answered: Answered
    ) -> None:
        """Join `local`, which is closed at the end, with a host and port or a path."""
        local.setblocking(False)
        self._loop.call(lambda: self._connect(connection, to, local, answered))

    def listen(self, connection: Connection, where: Where, listener: PlaceListener) -> None:
        """Listen on a port of the place's loopback, or at a path."""
        self._loop.call(lambda: listener.begin(self._relay_on(connection), where))

    def _connect(
        self, connection: Connection, to: Where, local: socket.socket, answered: Answered
    ) -> None:
        owner = _StreamOwner(answered, self._finished)
        bridge = SocketBridge(local, self._loop, owner)
        if not self._direct:
            self._relay_on(connection).connect(bridge, [word for word in to if word is not True])
            return
        channel = TunnelChannel(connection.transport, bridge, self._loop)
        bridge.join(channel)
        if len(to) == 1:
            channel.ask(STREAMLOCAL.encode(), direct_streamlocal(str(to[0])))
        else:
            channel.ask(b"direct-tcpip", direct_tcpip(str(to[0]), int(to[1]), _NOWHERE))

    def _relay_on(self, connection: Connection) -> Relay:
        if self._relay is not None:
            if self._relay.leads_to(connection.transport, self._target):
                return self._relay
            self._relay.retire()
        self._relay = Relay(connection, self._target, self._loop)
        return self._relay

    def _finished(self) -> None:
        if self._relay is not None and self._relay.unused:
            self._loop.call_later(_IDLE_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        relay = self._relay
        if relay is not None and relay.unused:
            self._relay = None
            relay.retire()


class PlaceListener:
    """A socket that listens in a place.

    `listens` is called once, with the port (0 for a path), or `None` where it cannot listen.
    `accepted` gets the near end of each connection. Both are called in any thread.
    """

    def __init__(
        self,
        loop: EventLoop,
        listens: Callable[[int | None], None],
        accepted: Callable[[socket.socket], None],
    ) -> None:
        self._loop = loop
        self._listens = listens
        self._accepted = accepted
        self._relay: Relay | None = None
        self._number = 0
        self._closed = False
        self._answer = threading.Lock()

    def begin(self, relay: Relay, where: Where) -> None:
        """Listen at a relay; in the loop's thread."""
        if self._closed:
            return
        self._relay = relay
        self._number = relay.listen(self, where)

    def close(self) -> None:
        """Stop listening; connections go on. Twice is fine."""
        self._closed = True
        self._loop.call(self._unlisten)

    def _unlisten(self) -> None:
        if self._relay is not None:
            self._relay.unlisten(self._number)

    # `RelayListener`, in the transport's thread.

    def listens(self, port: int) -> None:
        self._tell(port)

    def cannot_listen(self) -> None:
        self._tell(None)

    def _tell(self, port: int | None) -> None:
        if self._answer.acquire(blocking=False):  # for the first time, and for good
            self._listens(port)

    def accepted(self, relay: Relay, number: int) -> None:
        self._loop.call(lambda: self._accept(relay, number))

    def _accept(self, relay: Relay, number: int) -> None:
        if self._closed:
            relay.decline(number)
            return
        near, far = socket.socketpair()
        far.setblocking(False)
        bridge = SocketBridge(far, self._loop, _StreamOwner(lambda _: None, lambda: None))
        relay.adopt(number, bridge)
        bridge.start()
        self._accepted(near)


class _StreamOwner:
    """The owner of one bridge; see `BridgeOwner`."""

    def __init__(self, answered: Answered, finished: Callable[[], None]) -> None:
        self._answered = answered
        self._finished = finished

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
