"""A router of connections whose gateway does what the test says."""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Callable
from typing import Any

from jlremote.errors import ConnectionTimedOut
from jlremote.place.host.addresses import Target
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.forward.browser_requests import hosts_of
from jlremote.ssh.forward.connection_router import ConnectionRouter, WaitLimits
from jlremote.ssh.interfaces import Connection
from tests.lab.programs import PATIENCE
from tests.ssh.channels.parts import Transport

HOST = b"Host: localhost:8888\r\n"
PAGE = b"GET / HTTP/1.1\r\n%bAccept: text/html\r\nSec-Fetch-Dest: document\r\n\r\n" % HOST


class Gateway:
    """Has a connection, or an error."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.error: Exception | None = None
        self.rechecks = 0
        self.target = Target("10.0.0.2", 8888)
        self.proofs: queue.Queue[Exception | None] = queue.Queue()

    def wait(self, timeout: float) -> tuple[Connection, Target]:
        if self.error is not None:
            if isinstance(self.error, ConnectionTimedOut):
                time.sleep(min(timeout, 0.6))
            raise self.error
        made: Any = self
        return made, self.target

    def confirm(self, timeout: float) -> tuple[Connection, Target]:
        self.error = self.proofs.get(timeout=PATIENCE)
        return self.wait(timeout)

    def recheck(self) -> None:
        self.rechecks += 1


class Desk:
    """A router with one accepted connection, whose other end is `client`."""

    def __init__(self, limits: WaitLimits) -> None:
        self.loop = EventLoop()
        self.transport = Transport()
        self.gateway = Gateway(self.transport)
        gateway: Any = self.gateway
        self.router = ConnectionRouter(gateway, self.loop, limits, hosts_of(8888))
        self.clients: list[socket.socket] = []

    def connect(self, said: bytes = b"") -> socket.socket:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            accepted, _ = listener.accept()
        client.settimeout(PATIENCE)
        client.sendall(said)
        accepted.setblocking(False)
        self.clients.append(client)
        self.router.accept(accepted)
        return client

    def turn_until(self, happened: Callable[[], Any]) -> None:
        limit = time.monotonic() + 5
        while not happened():
            assert time.monotonic() < limit
            self.loop.call_later(0.005, lambda: None)
            self.loop._turn()

    def channel(self) -> Any:
        """Return the only channel."""
        (channel,) = self.transport._channels.values()
        return channel

    def turn(self) -> None:
        for _ in range(3):
            self.loop.call(lambda: None)
            self.loop._turn()


def is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
