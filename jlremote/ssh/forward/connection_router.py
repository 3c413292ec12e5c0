"""The router of accepted connections: to the target, or into a queue for the host."""

from __future__ import annotations

import logging
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from jlremote.errors import ConnectionTimedOut, JlrError
from jlremote.place.host.addresses import Target
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward import browser_requests
from jlremote.ssh.forward.place_streams import FarEnds
from jlremote.ssh.forward.socket_bridge import SocketBridge

_LOG = logging.getLogger(__name__)

_REQUEST_LIMIT = 64 * 1024
_TICK = 0.25
# Seconds that a refused client has for its request: browsers connect before they have one.
_SILENCE = 1.0
# Seconds of one wait for the gateway; stopping a forward takes that long at most.
_TURN = 1.0
_DEAD_CONNECTION_PAUSE = 0.05
_PROOF_SECONDS = 30.0

_Route = tuple[Connection, Target]


class Gateway(Protocol):
    """The link, as a forward needs it: a live connection and the target on it."""

    def wait(self, timeout: float) -> tuple[Connection, Target]:
        """Return a live connection and a target that was proved on it, waiting if need be.

        Raises:
            JlrError: there is none within `timeout` seconds; the message says why.
        """

    def confirm(self, timeout: float) -> tuple[Connection, Target]:
        """Return both after a proof that begins now, for connections that are open by now."""

    def recheck(self) -> None:
        """Prove the target again: it has refused a connection."""


@dataclass(frozen=True)
class WaitLimits:
    """The seconds that a connection may wait for the host."""

    connection: float = 30.0  # until it is closed. Long enough to hide a reconnect
    script: float = 3600.0  # the same for a page's own requests, while the page waits for them
    page_load: float = 4.0  # until a browser that loads a page gets one that says why
    fetches: int = 3  # of pages that wait so long; then lists fail, for others to get through


class Confirmation:
    """Proves shared ports after connecting and before the first byte; one proof serves many.

    Any user of the host can take a port once its program has ended, also a moment after a proof. A
    program that is proved to hold the port now has held it when the connection was made.
    `settle` is called in the loop's thread with each connection, and why it leads elsewhere.
    """

    def __init__(
        self,
        gateway: Gateway,
        loop: EventLoop,
        settle: Callable[[SocketBridge, Exception | None], None],
    ) -> None:
        self._gateway = gateway
        self._loop = loop
        self._settle = settle
        self._routes: dict[SocketBridge, _Route] = {}
        self._open: list[tuple[SocketBridge, _Route]] = []
        self._asking = False

    def expect(self, bridge: SocketBridge, connection: Connection, target: Target) -> None:
        """Note where a connection leads that is about to be opened."""
        self.forget(bridge)
        if target.shared:
            self._routes[bridge] = (connection, target)

    def opened(self, bridge: SocketBridge) -> bool:
        """Begin the proof for a connection that is open; return whether it needs one."""
        route = self._routes.get(bridge)
        if route is None:
            return False
        self._open.append((bridge, route))
        self._ask()
        return True

    def forget(self, bridge: SocketBridge) -> None:
        self._routes.pop(bridge, None)

    def _ask(self) -> None:
        if self._open and not self._asking:
            asked, self._open = self._open, []
            threading.Thread(target=self._prove, args=(asked,), daemon=True).start()
            self._asking = True  # now: starting a thread may fail

    def _prove(self, asked: list[tuple[SocketBridge, _Route]]) -> None:
        proved: _Route | None = None
        failure: Exception = JlrError("what listens there has changed; try again")
        try:
            proved = self._gateway.confirm(_PROOF_SECONDS)
        except Exception as error:  # noqa: BLE001  # connections must not wait for ever
            failure = error

        def settle() -> None:
            self._asking = False
            for bridge, route in asked:
                if self._routes.get(bridge) is route:
                    del self._routes[bridge]
                    self._settle(bridge, None if route == proved else failure)
            self._ask()

        self._loop.call(settle)


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
        self._arrivals: dict[SocketBridge, float] = {}  # of those without a far end
        self._silent: dict[SocketBridge, float] = {}  # when those refused without a request close
        self._queue: list[SocketBridge] = []
        self.failure: str | None = None
        self._obstacle: JlrError = ConnectionTimedOut("the host does not answer")
        self._far_ends = FarEnds(loop)
        self._confirmation = Confirmation(gateway, loop, self._confirmed)
        self._waiting = False
        self._ticking = False
        self._closing = threading.Event()

    def accept(self, sock: socket.socket) -> None:
        bridge = SocketBridge(sock, self._loop, self, self._admits)
        self._bridges.add(bridge)
        self._await_far_end(bridge)

    def cut(self) -> None:
        """Reset the connections that have a far end, because it is gone or has moved."""
        for bridge in self._bridges - self._arrivals.keys():
            bridge.abort()

    def close(self) -> None:
        self._closing.set()
        for bridge in list(self._bridges):
            bridge.close()
        self._far_ends.retire()

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
        _answer(bridge.socket, self._own_answer(request, f"nothing answers there: {reason}"))

    def failed(self, bridge: SocketBridge) -> None:
        self._confirmation.forget(bridge)
        self._await_far_end(bridge)

    def finished(self, bridge: SocketBridge) -> None:
        self._confirmation.forget(bridge)
        self._bridges.discard(bridge)
        self._arrivals.pop(bridge, None)
        self._silent.pop(bridge, None)

    def _admits(self, sock: socket.socket, begin: bytearray, over: bool) -> bool | None:
        verdict = browser_requests.is_admitted(begin, self._hosts, over=over)
        if verdict is False:
            _answer(sock, browser_requests.MISDIRECTED)
        return verdict

    def _await_far_end(self, bridge: SocketBridge) -> None:
        self._arrivals.setdefault(bridge, time.monotonic())
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(_TICK, self._tick)
        self._route(bridge)

    def _route(self, bridge: SocketBridge) -> None:
        try:
            connection, target = self._gateway.wait(0)
        except Exception as error:  # noqa: BLE001  # it must not wait for ever
            self._obstacle = _explained(error)
            self._enqueue(bridge)
            return
        if connection.transport.is_active():
            self._confirmation.expect(bridge, connection, target)
            self._far_ends.connect(connection, target, bridge)
        else:
            self._enqueue(bridge)

    def _confirmed(self, bridge: SocketBridge, failure: Exception | None) -> None:
        if failure is None:
            self._arrivals.pop(bridge, None)
            bridge.start()
        else:
            self._obstacle = _explained(failure)
            self._turn_away(bridge)

    def _enqueue(self, bridge: SocketBridge) -> None:
        self._queue.append(bridge)
        if not self._waiting:
            threading.Thread(target=self._wait, name="forward-gateway", daemon=True).start()
            self._waiting = True  # now: starting a thread may fail

    def _wait(self) -> None:
        final = False
        while self._arrivals and not self._closing.is_set() and not final:
            since = time.monotonic()
            try:
                connection, _ = self._gateway.wait(_TURN)
            except Exception as error:  # noqa: BLE001  # connections must not wait for ever
                self._obstacle = _explained(error)
                # An error before the timeout is final: the link has stopped trying.
                final = time.monotonic() - since < _TURN / 2
            else:
                if connection.transport.is_active():
                    break
                self._closing.wait(_DEAD_CONNECTION_PAUSE)
        self._loop.call(lambda: self._waited(final=final))

    def _waited(self, *, final: bool) -> None:
        self._waiting = False
        queue, self._queue = self._queue, []
        for bridge in queue:
            if bridge not in self._arrivals:
                continue
            if final:
                self._turn_away(bridge)
            else:
                self._silent.pop(bridge, None)
                self._route(bridge)

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
            fetches += browser_requests.is_fetch(request)
            lists += [bridge] * browser_requests.is_list(request)
            waits = browser_requests.is_script(request) and _is_open(bridge.socket)
            limit = self._limits.script if waits else self._limits.connection
            if now - arrival >= limit or self._own_answer(request):
                self._turn_away(bridge)
        for bridge in lists[: max(0, fetches - self._limits.fetches)]:
            _answer(bridge.socket, browser_requests.LATER)
            bridge.close()

    def _turn_away(self, bridge: SocketBridge) -> None:
        """Close a connection; a browser gets a page first, even if its request is still to come."""
        self.failure = self._obstacle.message
        now = time.monotonic()
        request = bridge.question or _request(bridge.socket)
        if request is None and now < self._silent.setdefault(bridge, now + _SILENCE):
            return  # until the next tick
        _answer(bridge.socket, self._own_answer(request or b""))
        bridge.close()

    def _own_answer(self, request: bytes, reason: str = "") -> bytes:
        """Return what a browser gets in place of the server's answer; empty for other clients."""
        if not browser_requests.is_admitted(request, self._hosts, over=True):
            return browser_requests.MISDIRECTED
        if not browser_requests.is_page_load(request):
            return b""
        return browser_requests.waiting_page(JlrError(reason) if reason else self._obstacle)


def _explained(error: Exception) -> JlrError:
    if isinstance(error, JlrError):
        return error
    _LOG.error("the gateway failed", exc_info=error)
    return JlrError(f"bug: {error!r}")


def _request(sock: socket.socket) -> bytes | None:
    try:
        return sock.recv(_REQUEST_LIMIT, socket.MSG_PEEK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _is_open(sock: socket.socket) -> bool:
    if sys.platform != "linux":
        return True
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return not poll.poll(0)


def _answer(sock: socket.socket, answer: bytes) -> None:
    """Send a small answer, if any; the request is read first, or closing would be a reset."""
    if not answer:
        return
    try:
        with suppress(BlockingIOError):  # a request that was to be asked again
            sock.recv(_REQUEST_LIMIT)
        sock.send(answer)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the browser left
