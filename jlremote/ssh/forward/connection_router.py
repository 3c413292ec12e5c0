"""Where accepted connections wait until they have a far end, or are turned away."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass

from jlremote.errors import ConnectionTimedOut, JlrError
from jlremote.host.target import Target
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.tunnel_channel import TunnelChannel, direct_tcpip
from jlremote.ssh.contract import Connection, Gateway
from jlremote.ssh.forward.relay import Relay
from jlremote.ssh.forward.socket_bridge import SocketBridge
from jlremote.ssh.forward.waiting_page import is_page_load, waiting_page

_REQUEST_LIMIT = 64 * 1024
_TICK = 0.25

# How long somebody who is turned away may take to say what was wanted: browsers connect first.
_SILENCE = 1.0

# How long the gateway is waited for in one go; stopping a forward takes that long at most.
_TURN = 1.0
_DEAD_CONNECTION_PAUSE = 0.05


@dataclass(frozen=True)
class WaitLimits:
    """How long a connection may wait for the host, in seconds.

    Attributes:
        connection: until it is closed. Long enough for a reconnect that nobody need notice.
        page_load: until a browser that loads a page gets one that says what is happening.
    """

    connection: float = 30.0
    page_load: float = 4.0


@dataclass(frozen=True)
class Traffic:
    """What a forward has to do.

    Attributes:
        open: connections that are served now.
        waiting: connections that wait for the host now.
        total: connections that came since the forward started.
        last_failure: why the last one that was not served was turned away.
    """

    open: int
    waiting: int
    total: int
    last_failure: str | None


class ConnectionRouter:
    """Gives each accepted connection a far end through the gateway. Lives in the loop's thread."""

    def __init__(self, gateway: Gateway, loop: EventLoop, limits: WaitLimits) -> None:
        self._gateway = gateway
        self._loop = loop
        self._limits = limits
        self._bridges: set[SocketBridge] = set()
        self._arrivals: dict[SocketBridge, float] = {}
        self._silent: dict[SocketBridge, float] = {}
        self._queue: list[SocketBridge] = []
        self._total = 0
        self._last_failure: str | None = None
        self._obstacle: JlrError = ConnectionTimedOut("the host does not answer")
        self._relay: Relay | None = None
        self._asking = False
        self._ticking = False
        self._closing = threading.Event()

    def traffic(self) -> Traffic:
        """Return the counts; from any thread."""
        waiting = len(self._arrivals)
        served = len(self._bridges) - waiting
        return Traffic(served, waiting, self._total, self._last_failure)

    def welcome(self, sock: socket.socket) -> None:
        """Take a connection that was just accepted."""
        bridge = SocketBridge(sock, self._loop, self)
        self._total += 1
        self._bridges.add(bridge)
        self._arrivals[bridge] = time.monotonic()
        self._keep_time()
        self._route(bridge)

    def cut(self) -> None:
        """Reset the connections that have a far end, as what they lead to has gone or moved."""
        for bridge in self._bridges - self._arrivals.keys():
            bridge.abort()

    def close(self) -> None:
        """Close all connections."""
        self._closing.set()
        for bridge in list(self._bridges):
            bridge.close()
        if self._relay is not None:
            self._relay.retire()

    # What bridges tell: `BridgeOwner`.

    def accepted(self, bridge: SocketBridge) -> None:
        """See `BridgeOwner`."""
        self._arrivals.pop(bridge, None)

    def refused(self, bridge: SocketBridge, reason: str) -> None:
        """See `BridgeOwner`; a browser gets a page, and when it comes again more is known."""
        self._last_failure = reason
        self._gateway.recheck()
        if is_page_load(_said(bridge.socket) or b""):
            _answer(bridge.socket, waiting_page(JlrError(f"nothing answers there: {reason}")))

    def failed(self, bridge: SocketBridge) -> None:
        """See `BridgeOwner`."""
        self._route(bridge)

    def finished(self, bridge: SocketBridge) -> None:
        """See `BridgeOwner`."""
        self._bridges.discard(bridge)
        self._arrivals.pop(bridge, None)
        self._silent.pop(bridge, None)

    def _route(self, bridge: SocketBridge) -> None:
        try:
            connection, target = self._gateway.wait(0)
        except JlrError as error:
            self._obstacle = error
            self._enqueue(bridge)
            return
        if connection.transport.is_active():
            self._connect(bridge, connection, target)
        else:
            self._enqueue(bridge)

    def _connect(self, bridge: SocketBridge, connection: Connection, target: Target) -> None:
        if target.relay is not None:
            self._relay_to(connection, target).connect(bridge)
            return
        channel = TunnelChannel(connection.transport, bridge, self._loop)
        bridge.join(channel)
        origin = bridge.socket.getsockname()
        channel.ask(b"direct-tcpip", direct_tcpip(target.address, target.port, origin))

    def _relay_to(self, connection: Connection, target: Target) -> Relay:
        relay, transport = self._relay, connection.transport
        if relay is None or not relay.leads_to(transport, target):
            if relay is not None:
                relay.retire()
            self._relay = relay = Relay(
                transport, target, self._loop, connection.with_sudo_password
            )
        return relay

    def _enqueue(self, bridge: SocketBridge) -> None:
        self._queue.append(bridge)
        if not self._asking:
            self._asking = True
            threading.Thread(target=self._ask, name="forward-gateway", daemon=True).start()

    def _ask(self) -> None:
        """Wait for the gateway as long as somebody waits; in a thread of its own."""
        final = None
        while self._arrivals and not self._closing.is_set():
            since = time.monotonic()
            try:
                connection, _ = self._gateway.wait(_TURN)
            except JlrError as error:
                self._obstacle = error
                # An answer before its time is the last word: nobody is trying any more.
                if time.monotonic() - since < _TURN / 2:
                    final = error
                    break
            else:
                if connection.transport.is_active():
                    break
                self._closing.wait(_DEAD_CONNECTION_PAUSE)
        self._loop.call(lambda: self._asked(final))

    def _asked(self, final: JlrError | None) -> None:
        self._asking = False
        queue, self._queue = self._queue, []
        for bridge in queue:
            if bridge not in self._arrivals:
                continue
            if final is None:
                self._silent.pop(bridge, None)
                self._route(bridge)
            else:
                self._turn_away(bridge)

    def _keep_time(self) -> None:
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(_TICK, self._tick)

    def _tick(self) -> None:
        now = time.monotonic()
        for bridge in list(self._silent):
            self._turn_away(bridge)
        for bridge, arrival in list(self._arrivals.items()):
            if now - arrival < self._limits.page_load:
                break  # those behind it came later
            said = _said(bridge.socket) or b""
            if now - arrival >= self._limits.connection or is_page_load(said):
                self._turn_away(bridge)
        self._ticking = bool(self._arrivals)
        if self._ticking:
            self._loop.call_later(_TICK, self._tick)

    def _turn_away(self, bridge: SocketBridge) -> None:
        """Close a connection; a browser gets a page first, also one that has yet to ask for it."""
        self._last_failure = self._obstacle.message
        now = time.monotonic()
        said = _said(bridge.socket)
        if said is None and now < self._silent.setdefault(bridge, now + _SILENCE):
            return  # looked at again with every tick
        if is_page_load(said or b""):
            _answer(bridge.socket, waiting_page(self._obstacle))
        bridge.close()


def _said(sock: socket.socket) -> bytes | None:
    """Return what has come so far: `None` for nothing yet, nothing (`b""`) at the end."""
    try:
        return sock.recv(_REQUEST_LIMIT, socket.MSG_PEEK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _answer(sock: socket.socket, answer: bytes) -> None:
    """Send a small answer; what was asked is read first, or closing would reset it."""
    try:
        sock.recv(_REQUEST_LIMIT)
        sock.send(answer)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the browser left
