"""The processes of the tunnel's benchmark, each one as in real life, and what it measures.

Run as `python -m tests.bench.tunnel_parts ROLE ARGUMENTS`; prints its port when it is ready, and
ends when its stdin does.
"""

from __future__ import annotations

import os
import socket
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import paramiko

from jlremote.place.host.addresses import Target
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.forwarder import TunnelForward
from jlremote.ssh.transport.algorithms import Offer
from jlremote.ssh.transport.transport import Transport

BLOCK = bytes(1 << 20)
# As a container's address is its own: what listens on 127.0.0.1 is proved after each connection.
FAR = "127.0.0.2"
# A line passes packets on. Of what it took in pieces of 256 KiB each would wait 2 ms for its end.
_CHUNK = 16 * 1024
_ROUTER_BUFFER = 16 << 20


def serve(address: str, handle: Callable[[socket.socket], None]) -> int:
    """Handle each connection in a thread of its own; return the port."""
    listener = socket.create_server((address, 0), backlog=1024)

    def accept() -> None:
        while True:
            accepted, _ = listener.accept()
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=handle, args=(accepted,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


def answer(sock: socket.socket) -> None:
    """Do what the first byte asks for: `d`own, `u`p, `e`cho."""
    with sock, suppress(OSError):
        wish = sock.recv(1)
        if wish == b"d":
            for _ in range(int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")):
                sock.sendall(BLOCK)
        elif wish == b"u":
            count = 0
            while got := sock.recv(1 << 20):
                count += len(got)
            sock.sendall(count.to_bytes(8, "big"))
        elif wish == b"e":
            while got := sock.recv(65536):
                sock.sendall(got)


def slow_line(port: int, delay: float, rate: float) -> int:
    """Pass connections on to `port`, with `delay` s and `rate` bytes a second each way."""

    def carry(near: socket.socket) -> None:
        far = connect(port)
        for one, other in ((near, far), (far, near)):
            _Direction(one, other, delay, rate)

    return serve("127.0.0.1", carry)


class _Direction:
    """One direction of a slow line: what was read is written a while later, in order."""

    def __init__(self, source: socket.socket, sink: socket.socket, delay: float, rate: float):
        self._source, self._sink = source, sink
        self._delay, self._rate = delay, rate
        self._queue: deque[tuple[float, bytes]] = deque()
        self._size = 0
        self._changed = threading.Condition()
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    def _read(self) -> None:
        free = time.monotonic()
        data = b"-"
        while data:
            try:
                data = self._source.recv(_CHUNK)
            except OSError:
                data = b""
            free = max(free, time.monotonic()) + len(data) / self._rate
            with self._changed:
                self._queue.append((free + self._delay, data))
                self._size += len(data)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._size < _ROUTER_BUFFER)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._queue))
                when, data = self._queue.popleft()
                self._size -= len(data)
                self._changed.notify_all()
            time.sleep(max(0.0, when - time.monotonic()))
            with suppress(OSError):
                if not data:
                    self._sink.shutdown(socket.SHUT_WR)
                    return
                self._sink.sendall(data)


class _Gateway:
    """Hands out one connection, for ever."""

    def __init__(self, transport: Transport, port: int) -> None:
        self.transport = transport
        self._target = Target(FAR, port)

    def wait(self, timeout: float) -> tuple[Connection, Target]:
        return cast("Connection", self), self._target

    def confirm(self, timeout: float) -> tuple[Connection, Target]:
        return self.wait(timeout)

    def recheck(self) -> None:
        pass


def our_forward(sshd_port: int, key: str, target_port: int) -> int:
    sock = socket.create_connection(("127.0.0.1", sshd_port))
    transport = Transport(sock, Offer())
    transport.handshake(10)
    transport.auth_publickey("root", paramiko.Ed25519Key(filename=key))
    forward = TunnelForward(0, _Gateway(transport, target_port))
    forward.start()
    return forward.local_port


def connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def down(port: int, blocks: int) -> float:
    buffer = bytearray(1 << 20)
    with connect(port) as sock:
        since = time.perf_counter()
        sock.sendall(b"d" + blocks.to_bytes(4, "big"))
        total = 0
        while got := sock.recv_into(buffer):
            total += got
    assert total == blocks * len(BLOCK)
    return total / (time.perf_counter() - since) / 1e6


def up(port: int, blocks: int) -> float:
    """Return MB/s of an upload, until the far end has all of it."""
    with connect(port) as sock:
        since = time.perf_counter()
        sock.sendall(b"u")
        for _ in range(blocks):
            sock.sendall(BLOCK)
        sock.shutdown(socket.SHUT_WR)
        count = int.from_bytes(sock.recv(8, socket.MSG_WAITALL), "big")
    assert count == blocks * len(BLOCK)
    return count / (time.perf_counter() - since) / 1e6


def trip(port: int, count: int) -> float:
    """Return the median milliseconds of a small message there and back."""
    took = []
    with connect(port) as sock:
        sock.sendall(b"e")
        for _ in range(count):
            since = time.perf_counter()
            sock.sendall(b"x" * 100)
            sock.recv(100, socket.MSG_WAITALL)
            took.append((time.perf_counter() - since) * 1e3)
    return statistics.median(took)


def new_connections(port: int, count: int) -> float:
    """Return how many connections a second are made, used and closed, one after the other."""
    since = time.perf_counter()
    for _ in range(count):
        with connect(port) as sock:
            sock.sendall(b"ex")
            sock.recv(1)
    return count / (time.perf_counter() - since)


def _main(role: str, *arguments: str) -> None:
    if role == "far":
        print(serve(FAR, answer), flush=True)
    elif role == "line":
        port, delay, rate = arguments
        print(slow_line(int(port), float(delay), float(rate)), flush=True)
    elif role == "ours":
        sshd_port, key, target_port = arguments
        print(our_forward(int(sshd_port), key, int(target_port)), flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
