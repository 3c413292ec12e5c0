"""Real parts of a forward's tests: an sshd, a connection to it, servers behind it, a gateway."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import paramiko
import psutil

from jlremote.errors import ConnectionTimedOut, JlrError
from jlremote.place.host.addresses import Target
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.forwarder import TunnelForward
from jlremote.ssh.transport.algorithms import Offer
from jlremote.ssh.transport.transport import Transport
from tests.lab.sshd import SSHServer


@dataclass
class PlainConnection:
    """A connection that has nothing but its transport."""

    transport: Any

    def with_sudo_password(self, script: bytes) -> bytes:
        return script


class SwitchedGateway:
    """A gateway that is up or down as the test says."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._route: tuple[Connection, Target] | None = None
        self.final: JlrError | None = None
        self.rechecks = 0

    def up(self, transport: Any, target: Target) -> None:
        with self._changed:
            self._route = (cast("Connection", PlainConnection(transport)), target)
            self._changed.notify_all()

    def down(self) -> None:
        with self._changed:
            self._route = None

    def confirm(self, timeout: float) -> tuple[Connection, Target]:
        return self.wait(timeout)

    def recheck(self) -> None:
        self.rechecks += 1

    def wait(self, timeout: float) -> tuple[Connection, Target]:
        with self._changed:
            if self.final is not None:
                raise self.final
            self._changed.wait_for(lambda: self._route is not None, timeout)
            if self._route is None:
                raise ConnectionTimedOut("`lab` is <gone> for now", hint="wait a moment")
            return self._route


class Server:
    """A TCP server on a free port of 127.0.0.1, with a thread for each connection."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self.target = Target("127.0.0.1", self.port)
        self.errors: list[BaseException] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._handle, args=(accepted,), daemon=True).start()

    def _handle(self, accepted: socket.socket) -> None:
        with accepted:
            try:
                self._serve(accepted)
            except OSError as error:
                self.errors.append(error)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def echo(sock: socket.socket) -> None:
    """Send back what comes, and then the end."""
    while data := sock.recv(65536):
        sock.sendall(data)


def read_all(sock: socket.socket) -> bytes:
    """Return what comes until the end."""
    parts = []
    while data := sock.recv(1 << 20):
        parts.append(data)
    return b"".join(parts)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def finish(sock: socket.socket) -> None:
    """Send the end; a peer that was quicker may have closed or reset the connection."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_WR)


def ask(port: int, question: bytes) -> bytes:
    """Send `question` and its end; return the whole answer."""
    with connect(port) as sock:
        sock.sendall(question)
        finish(sock)
        return read_all(sock)


def is_turned_away(port: int, question: bytes) -> bool:
    """Return whether a connection is closed or reset without a byte."""
    try:
        return ask(port, question) == b""
    except ConnectionError:  # what the kernel makes of closing before all was read
        return True


def counts(forward: TunnelForward) -> tuple[int, int]:
    """Return how many connections have a far end, and how many wait for one."""
    router = forward._server_list[0].router
    waiting = len(router._arrivals)
    return len(router._bridges) - waiting, waiting


def new_transport(
    sshd: SSHServer, key: Path, offer: Offer | None = None, *, port: int | None = None
) -> Transport:
    """Return a connection of root's; with `port` by a line that leads to the server."""
    sock = socket.create_connection(("127.0.0.1", port or sshd.port))
    transport = Transport(sock, offer or Offer())
    transport.handshake(10)
    transport.auth_publickey("root", paramiko.Ed25519Key(filename=str(key)))
    return transport


PYTHON = (sys.executable, "-X")


def through_relay(server: Server, *relay: str) -> Target:
    return Target("127.0.0.1", server.port, relay or (*PYTHON, f"for={server.port}"))


def relay_processes(server: Server) -> list[psutil.Process]:
    """Return the relays to a server; other tests at the same time have relays of their own."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [])[:3] == [*PYTHON, f"for={server.port}"]
    ]


@contextlib.contextmanager
def serving(serve: Callable[[socket.socket], None]) -> Iterator[Server]:
    server = Server(serve)
    try:
        yield server
    finally:
        server.close()


MEGABYTE = 1 << 20


def ask_at_once(port: int, question: bytes) -> bytes:
    """Send `question` and read at the same time, as an echo wants it."""
    answer: list[bytes] = []
    with connect(port) as sock:
        reader = threading.Thread(target=lambda: answer.append(read_all(sock)))
        reader.start()
        sock.sendall(question)
        finish(sock)
        reader.join(60)
    return answer[0]


def same(one: bytes, other: bytes) -> bool:
    """Return whether both are equal; pytest would take minutes to show how they differ."""
    return hashlib.sha256(one).digest() == hashlib.sha256(other).digest()


def count_key_exchanges(transport: Any) -> list[str]:
    """Return a list that gets an entry with every exchange from now on."""
    exchanges: list[str] = []
    activate = transport._activate_inbound

    def noticed() -> None:
        exchanges.append("done")
        activate()

    transport._activate_inbound = noticed
    return exchanges
