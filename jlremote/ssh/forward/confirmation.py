"""The proof of a shared port after the connection to it, and before the first byte.

Any user of the host can take a port once its program has ended, also a moment after a proof. A
program that is proved to hold the port now has held it when the connection was made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from jlremote.errors import JlrError
from jlremote.place.host.addresses import Target
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.contract import Connection, Gateway
from jlremote.ssh.forward.socket_bridge import SocketBridge

_PROOF_SECONDS = 30.0

Route = tuple[Connection, Target]


class Confirmation:
    """Has the gateway prove what open connections lead to; one proof serves many.

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
        self._routes: dict[SocketBridge, Route] = {}
        self._open: list[tuple[SocketBridge, Route]] = []
        self._asking = False

    def expect(self, bridge: SocketBridge, connection: Connection, target: Target) -> None:
        """Note where a connection leads that is about to be opened."""
        self._routes.pop(bridge, None)
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
        """Forget a connection that is closed or lost."""
        self._routes.pop(bridge, None)

    def _ask(self) -> None:
        if self._open and not self._asking:
            asked, self._open = self._open, []
            threading.Thread(target=self._prove, args=(asked,), daemon=True).start()
            self._asking = True  # now: starting a thread may fail

    def _prove(self, asked: list[tuple[SocketBridge, Route]]) -> None:
        """Wait for the proof, in a thread of its own."""
        proved: Route | None = None
        failure: Exception = JlrError("what listens there has changed; try again")
        try:
            proved = self._gateway.confirm(_PROOF_SECONDS)
        except Exception as error:  # noqa: BLE001  # connections must not wait for ever
            failure = error
        self._loop.call(lambda: self._proved(asked, proved, failure))

    def _proved(
        self, asked: list[tuple[SocketBridge, Route]], proved: Route | None, failure: Exception
    ) -> None:
        self._asking = False
        for bridge, route in asked:
            if self._routes.get(bridge) is route:
                del self._routes[bridge]
                self._settle(bridge, None if route == proved else failure)
        self._ask()
