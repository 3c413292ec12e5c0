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
from typing import Protocol

from jlremote.errors import ConnectionTimedOut, JlrError
from jlremote.place.host.addresses import Target
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward import browser_requests
from jlremote.ssh.forward.browser_requests import MOST_OF_A_HEAD
from jlremote.ssh.forward.place_streams import FarEnds
from jlremote.ssh.forward.socket_bridge import SocketBridge

_LOG = logging.getLogger(__name__)

_TICK = 0.25
# Seconds that a refused client has for its request: browsers connect before they have one.
_SILENCE = 1.0
# Seconds of one wait for the gateway; stopping a forward takes that long at most.
_TURN = 1.0
_DEAD_CONNECTION_PAUSE = 0.05
_PROOF_SECONDS = 30.0

_Route = tuple[Connection, Target]


class Gateway(Protocol):
    """The link, as a forward needs it: a live connection and a target that was proved on it.

    `wait` raises `JlrError` if there is none within `timeout` seconds. `confirm` returns both after
    a proof that begins now. `recheck` proves the target again, which has refused a connection.
    """

    def wait(self, timeout: float) -> _Route: ...
    def confirm(self, timeout: float) -> _Route: ...
    def recheck(self) -> None: ...


@dataclass(frozen=True)
class WaitLimits:
    """The seconds that a connection may wait for the host."""

    connection: float = 30.0  # until it is closed. Long enough to hide a reconnect
    script: float = 3600.0  # the same for a page's own requests, while the page waits for them
    page_load: float = 4.0  # until a browser that loads a page gets one that says why
    fetches: int = 3  # of pages that wait so long; then lists fail, for others to get through


class ConnectionRouter:
    """Joins each accepted connection with a far end, in the loop's thread.

    Any user of the host can take a shared port once its program has ended, also a moment after a
    proof. So such a port is proved after connecting and before the first byte: a program that holds
    it now has held it when the connection was made. One proof serves many connections.

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
        self._routes: dict[SocketBridge, _Route] = {}  # those of shared ports, without a proof
        self._unproved: list[tuple[SocketBridge, _Route]] = []  # those that are open
        self.failure: str | None = None
        self._obstacle: JlrError = ConnectionTimedOut("the host does not answer")
        self._far_ends = FarEnds(loop)
        self._waiting = self._ticking = self._proving = False
        self._closing = threading.Event()

    def accept(self, sock: socket.socket) -> None:
        bridge = SocketBridge(sock, self._loop, self, self._admits)
        self._bridges.add(bridge)
        self._await_far_end(bridge)

    def cut(self) -> None:
        for bridge in self._bridges - self._arrivals.keys():
            bridge.abort()

    def close(self) -> None:
        self._closing.set()
        for bridge in list(self._bridges):
            bridge.close()
        self._far_ends.retire()

    # The bridges' events: `BridgeOwner`.

    def accepted(self, bridge: SocketBridge) -> bool:
        route = self._routes.get(bridge)
        if route is None:
            self._arrivals.pop(bridge, None)
            return True
        self._unproved.append((bridge, route))
        self._begin_proof()
        return False

    def refused(self, bridge: SocketBridge, reason: str) -> None:
        self.failure = reason
        self._gateway.recheck()
        request = _request(bridge) or b""
        _answer(bridge.socket, self._own_answer(request, f"nothing answers there: {reason}"))

    def failed(self, bridge: SocketBridge) -> None:
        self._routes.pop(bridge, None)
        self._await_far_end(bridge)

    def finished(self, bridge: SocketBridge) -> None:
        self._bridges.discard(bridge)
        for noted in (self._routes, self._arrivals, self._silent):
            noted.pop(bridge, None)

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
            if target.shared:
                self._routes[bridge] = (connection, target)
            self._far_ends.connect(connection, target, bridge)
        else:
            self._enqueue(bridge)

    def _begin_proof(self) -> None:
        if self._unproved and not self._proving:
            asked, self._unproved = self._unproved, []
            threading.Thread(target=self._prove, args=(asked,), daemon=True).start()
            self._proving = True  # now: starting a thread may fail

    def _prove(self, asked: list[tuple[SocketBridge, _Route]]) -> None:
        proved, failure = None, JlrError("what listens there has changed; try again")
        try:
            proved = self._gateway.confirm(_PROOF_SECONDS)
        except Exception as error:  # noqa: BLE001  # connections must not wait for ever
            failure = _explained(error)
        self._loop.call(lambda: self._proved(asked, proved, failure))

    def _proved(
        self, asked: list[tuple[SocketBridge, _Route]], proved: _Route | None, failure: JlrError
    ) -> None:
        self._proving = False
        for bridge, route in asked:
            if self._routes.get(bridge) is not route:
                continue  # it is closed, or has lost that connection
            del self._routes[bridge]
            if route == proved:
                self._arrivals.pop(bridge, None)
                bridge.start()
            else:
                self._obstacle = failure
                self._turn_away(bridge)
        self._begin_proof()

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
            request = _request(bridge) or b""
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
        request = _request(bridge)
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


def _request(bridge: SocketBridge) -> bytes | None:
    """Return what the client has said, `None` if nothing yet."""
    try:
        return bridge.question or bridge.socket.recv(MOST_OF_A_HEAD, socket.MSG_PEEK)
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
            sock.recv(MOST_OF_A_HEAD)
        sock.send(answer)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the browser left
