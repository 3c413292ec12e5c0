"""Where accepted connections wait until they have a far end, or are turned away."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass

from jlremote.errors import ConnectionTimedOut, JlrError
from jlremote.host.target import Target
from jlremote.ssh.channels.tunnel_channel import TunnelChannel, direct_tcpip
from jlremote.ssh.contract import Connection, Gateway
from jlremote.ssh.forward.loop import Loop
from jlremote.ssh.forward.relay import Relay
from jlremote.ssh.forward.splice import Splice
from jlremote.ssh.forward.waiting_page import is_page_load, waiting_page

_REQUEST_LIMIT = 64 * 1024
_TICK = 0.25

# How long somebody who is turned away may take to say what was wanted: browsers connect first.
_SILENCE = 1.0

# How long the gateway is waited for in one go; stopping a forward takes that long at most.
_TURN = 1.0
_DEAD_CONNECTION_PAUSE = 0.05


@dataclass(frozen=True)
class Patience:
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


class Reception:
    """Gives each accepted connection a far end through the gateway. Lives in the loop's thread."""

    def __init__(self, gateway: Gateway, loop: Loop, patience: Patience) -> None:
        self._gateway = gateway
        self._loop = loop
        self._patience = patience
        self._splices: set[Splice] = set()
        self._arrivals: dict[Splice, float] = {}
        self._silent: dict[Splice, float] = {}
        self._queue: list[Splice] = []
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
        served = len(self._splices) - waiting
        return Traffic(served, waiting, self._total, self._last_failure)

    def welcome(self, sock: socket.socket) -> None:
        """Take a connection that was just accepted."""
        splice = Splice(sock, self._loop, self)
        self._total += 1
        self._splices.add(splice)
        self._arrivals[splice] = time.monotonic()
        self._keep_time()
        self._route(splice)

    def cut(self) -> None:
        """Reset the connections that have a far end, as what they lead to has gone or moved."""
        for splice in self._splices - self._arrivals.keys():
            splice.abort()

    def close(self) -> None:
        """Close all connections."""
        self._closing.set()
        for splice in list(self._splices):
            splice.close()
        if self._relay is not None:
            self._relay.retire()

    # What splices tell: `Opening`.

    def accepted(self, splice: Splice) -> None:
        """See `Opening`."""
        self._arrivals.pop(splice, None)

    def refused(self, splice: Splice, reason: str) -> None:
        """See `Opening`; a browser gets a page, and when it comes again more is known."""
        self._last_failure = reason
        self._gateway.doubt()
        if is_page_load(_said(splice.socket) or b""):
            _answer(splice.socket, waiting_page(JlrError(f"nothing answers there: {reason}")))

    def failed(self, splice: Splice) -> None:
        """See `Opening`."""
        self._route(splice)

    def finished(self, splice: Splice) -> None:
        """See `Opening`."""
        self._splices.discard(splice)
        self._arrivals.pop(splice, None)
        self._silent.pop(splice, None)

    def _route(self, splice: Splice) -> None:
        try:
            connection, target = self._gateway.wait(0)
        except JlrError as error:
            self._obstacle = error
            self._enqueue(splice)
            return
        if connection.transport.is_active():
            self._connect(splice, connection, target)
        else:
            self._enqueue(splice)

    def _connect(self, splice: Splice, connection: Connection, target: Target) -> None:
        if target.relay is not None:
            self._relay_to(connection, target).connect(splice)
            return
        channel = TunnelChannel(connection.transport, splice, self._loop)
        splice.join(channel)
        origin = splice.socket.getsockname()
        channel.ask(b"direct-tcpip", direct_tcpip(target.address, target.port, origin))

    def _relay_to(self, connection: Connection, target: Target) -> Relay:
        relay, transport = self._relay, connection.transport
        if relay is None or not relay.leads_to(transport, target):
            if relay is not None:
                relay.retire()
            self._relay = relay = Relay(transport, target, self._loop, connection.prepared)
        return relay

    def _enqueue(self, splice: Splice) -> None:
        self._queue.append(splice)
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
        for splice in queue:
            if splice not in self._arrivals:
                continue
            if final is None:
                self._silent.pop(splice, None)
                self._route(splice)
            else:
                self._turn_away(splice)

    def _keep_time(self) -> None:
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(_TICK, self._tick)

    def _tick(self) -> None:
        now = time.monotonic()
        for splice in list(self._silent):
            self._turn_away(splice)
        for splice, arrival in list(self._arrivals.items()):
            if now - arrival < self._patience.page_load:
                break  # those behind it came later
            said = _said(splice.socket) or b""
            if now - arrival >= self._patience.connection or is_page_load(said):
                self._turn_away(splice)
        self._ticking = bool(self._arrivals)
        if self._ticking:
            self._loop.call_later(_TICK, self._tick)

    def _turn_away(self, splice: Splice) -> None:
        """Close a connection; a browser gets a page first, also one that has yet to ask for it."""
        self._last_failure = self._obstacle.message
        now = time.monotonic()
        said = _said(splice.socket)
        if said is None and now < self._silent.setdefault(splice, now + _SILENCE):
            return  # looked at again with every tick
        if is_page_load(said or b""):
            _answer(splice.socket, waiting_page(self._obstacle))
        splice.close()


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
