"""The router of accepted connections: to the target, or into a queue for the host."""

from __future__ import annotations

import logging
import select
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from jlremote.errors import ConnectionTimedOut, JlrError
from jlremote.host.addresses import Target
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.contract import Connection, Gateway
from jlremote.ssh.forward.browser_requests import (
    is_admitted,
    is_fetch,
    is_list,
    is_page_load,
    is_script,
)
from jlremote.ssh.forward.confirmation import Confirmation
from jlremote.ssh.forward.relay import Relay
from jlremote.ssh.forward.socket_bridge import SocketBridge
from jlremote.ssh.forward.waiting_page import LATER, MISDIRECTED, waiting_page
from jlremote.ssh.wire_format import STREAMLOCAL, direct_streamlocal, direct_tcpip

_LOG = logging.getLogger(__name__)

_REQUEST_LIMIT = 64 * 1024
_TICK = 0.25
# Seconds that a refused client has for its request: browsers connect before they have one.
_SILENCE = 1.0
# Seconds of one wait for the gateway; stopping a forward takes that long at most.
_TURN = 1.0
_DEAD_CONNECTION_PAUSE = 0.05


@dataclass(frozen=True)
class WaitLimits:
    """The seconds that a connection may wait for the host."""

    connection: float = 30.0  # until it is closed. Long enough to hide a reconnect
    script: float = 3600.0  # the same for a page's own requests, while the page waits for them
    page_load: float = 4.0  # until a browser that loads a page gets one that says why
    fetches: int = 3  # of pages that wait so long; then lists fail, for others to get through


class ConnectionRouter:
    """Joins each accepted connection with a far end, in the loop's thread.

    `hosts` are the `Host` headers under which requests are passed on. `failure` is why the last
    refused connection was refused, `None` if there was none.
    """

    def __init__(
        self, gateway: Gateway, loop: EventLoop, limits: WaitLimits, hosts: frozenset[bytes]
    ) -> None:
        self._gateway = gateway
        self._loop = loop
        self._limits = limits
        self._hosts = hosts
        self._bridges: set[SocketBridge] = set()
        self._arrivals: dict[SocketBridge, float] = {}
        self._silent: dict[SocketBridge, float] = {}
        self._queue: list[SocketBridge] = []
        self.failure: str | None = None
        self._obstacle: JlrError = ConnectionTimedOut("the host does not answer")
        self._relay: Relay | None = None
        self._confirmation = Confirmation(gateway, loop, self._confirmed)
        self._waiting = False
        self._ticking = False
        self._closing = threading.Event()

    def accept(self, sock: socket.socket) -> None:
        """Route a connection that was just accepted."""
        bridge = SocketBridge(sock, self._loop, self, self._admits)
        self._bridges.add(bridge)
        self._arrivals[bridge] = time.monotonic()
        self._start_ticking()
        self._route(bridge)

    def cut(self) -> None:
        """Reset the connections that have a far end, because it is gone or has moved."""
        for bridge in self._bridges - self._arrivals.keys():
            bridge.abort()

    def close(self) -> None:
        self._closing.set()
        for bridge in list(self._bridges):
            bridge.close()
        if self._relay is not None:
            self._relay.retire()

    # The bridges' events: `BridgeOwner`.

    def accepted(self, bridge: SocketBridge) -> bool:
        if self._confirmation.opened(bridge):
            return False
        self._arrivals.pop(bridge, None)
        return True

    def refused(self, bridge: SocketBridge, reason: str) -> None:
        self.failure = reason
        self._gateway.recheck()
        request = bridge.question or _request(bridge.socket) or b""
        if page := self._own_answer(request, JlrError(f"nothing answers there: {reason}")):
            _answer(bridge.socket, page)

    def failed(self, bridge: SocketBridge) -> None:
        self._confirmation.forget(bridge)
        self._arrivals.setdefault(bridge, time.monotonic())
        self._start_ticking()
        self._route(bridge)

    def finished(self, bridge: SocketBridge) -> None:
        self._confirmation.forget(bridge)
        self._bridges.discard(bridge)
        self._arrivals.pop(bridge, None)
        self._silent.pop(bridge, None)

    def _admits(self, sock: socket.socket, begin: bytearray, over: bool) -> bool | None:
        verdict = is_admitted(begin, self._hosts, over=over)
        if verdict is False:
            _answer(sock, MISDIRECTED)
        return verdict

    def _route(self, bridge: SocketBridge) -> None:
        try:
            connection, target = self._gateway.wait(0)
        except Exception as error:  # noqa: BLE001  # it must not wait for ever
            self._obstacle = _explained(error)
            self._enqueue(bridge)
            return
        if connection.transport.is_active():
            self._connect(bridge, connection, target)
        else:
            self._enqueue(bridge)

    def _connect(self, bridge: SocketBridge, connection: Connection, target: Target) -> None:
        self._confirmation.expect(bridge, connection, target)
        if target.relay is not None:
            self._relay_to(connection, target).connect(bridge)
            return
        channel = TunnelChannel(connection.transport, bridge, self._loop)
        bridge.join(channel)
        if target.path:
            channel.ask(STREAMLOCAL.encode(), direct_streamlocal(target.path))
            return
        origin = bridge.socket.getsockname()
        channel.ask(b"direct-tcpip", direct_tcpip(target.address, target.port, origin))

    def _confirmed(self, bridge: SocketBridge, failure: Exception | None) -> None:
        if failure is None:
            self._arrivals.pop(bridge, None)
            bridge.start()
        else:
            self._obstacle = _explained(failure)
            self._turn_away(bridge)

    def _relay_to(self, connection: Connection, target: Target) -> Relay:
        if self._relay is not None:
            if self._relay.leads_to(connection.transport, target):
                return self._relay
            self._relay.retire()
        self._relay = Relay(connection, target, self._loop)
        return self._relay

    def _enqueue(self, bridge: SocketBridge) -> None:
        self._queue.append(bridge)
        if not self._waiting:
            threading.Thread(target=self._wait, name="forward-gateway", daemon=True).start()
            self._waiting = True  # now: starting a thread may fail

    def _wait(self) -> None:
        """Wait for the gateway while connections wait; in a thread of its own."""
        final = None
        while self._arrivals and not self._closing.is_set():
            since = time.monotonic()
            try:
                connection, _ = self._gateway.wait(_TURN)
            except Exception as error:  # noqa: BLE001  # connections must not wait for ever
                self._obstacle = _explained(error)
                # An error before the timeout is final: the link has stopped trying.
                if time.monotonic() - since < _TURN / 2:
                    final = self._obstacle
                    break
            else:
                if connection.transport.is_active():
                    break
                self._closing.wait(_DEAD_CONNECTION_PAUSE)
        self._loop.call(lambda: self._waited(final))

    def _waited(self, final: JlrError | None) -> None:
        self._waiting = False
        queue, self._queue = self._queue, []
        for bridge in queue:
            if bridge not in self._arrivals:
                continue
            if final is None:
                self._silent.pop(bridge, None)
                self._route(bridge)
            else:
                self._turn_away(bridge)

    def _start_ticking(self) -> None:
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(_TICK, self._tick)

    def _tick(self) -> None:
        try:
            self._turn_late_away(time.monotonic())
        finally:
            self._ticking = bool(self._arrivals)
            if self._ticking:
                self._loop.call_later(_TICK, self._tick)

    def _turn_late_away(self, now: float) -> None:
        for bridge in list(self._silent):
            self._turn_away(bridge)
        fetches, lists = 0, []
        for bridge, arrival in list(self._arrivals.items()):
            if now - arrival < self._limits.page_load:
                break  # those behind it came later
            request = bridge.question or _request(bridge.socket) or b""
            fetches += is_fetch(request)
            lists += [bridge] * is_list(request)
            waits = is_script(request) and _is_open(bridge.socket)
            limit = self._limits.script if waits else self._limits.connection
            if now - arrival >= limit or self._own_answer(request):
                self._turn_away(bridge)
        for bridge in lists[: max(0, fetches - self._limits.fetches)]:
            _answer(bridge.socket, LATER)
            bridge.close()

    def _turn_away(self, bridge: SocketBridge) -> None:
        """Close a connection; a browser gets a page first, even if its request is still to come."""
        self.failure = self._obstacle.message
        now = time.monotonic()
        request = bridge.question or _request(bridge.socket)
        if request is None and now < self._silent.setdefault(bridge, now + _SILENCE):
            return  # until the next tick
        if page := self._own_answer(request or b""):
            _answer(bridge.socket, page)
        bridge.close()

    def _own_answer(self, request: bytes, error: JlrError | None = None) -> bytes:
        """Return what a browser gets in place of the server's answer; empty for other clients."""
        if not is_admitted(request, self._hosts, over=True):
            return MISDIRECTED
        return waiting_page(error or self._obstacle) if is_page_load(request) else b""


def _explained(error: Exception) -> JlrError:
    if isinstance(error, JlrError):
        return error
    _LOG.error("the gateway failed", exc_info=error)
    return JlrError(f"bug: {error!r}")


def _request(sock: socket.socket) -> bytes | None:
    """Return the request so far: `None` for nothing yet, `b""` at the end."""
    try:
        return sock.recv(_REQUEST_LIMIT, socket.MSG_PEEK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _is_open(sock: socket.socket) -> bool:
    """Return whether the client still waits, as far as this system tells."""
    if sys.platform != "linux":
        return True
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return not poll.poll(0)


def _answer(sock: socket.socket, answer: bytes) -> None:
    """Send a small answer; the request is read first, or closing would reset the connection."""
    try:
        with suppress(BlockingIOError):  # a request that was to be asked again
            sock.recv(_REQUEST_LIMIT)
        sock.send(answer)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the browser left
