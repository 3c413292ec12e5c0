"""What the tunnel's benchmark measures on a forward's port."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.bench.tunnel_parts import BLOCK

_SETTLE_SECONDS = 0.3
KEPT = 100


def connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def down(port: int, blocks: int) -> float:
    """Return MB/s of a download."""
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


def trips(port: int, count: int) -> list[float]:
    """Return the milliseconds that small messages took to come back."""
    took = []
    with connect(port) as sock:
        sock.sendall(b"e")
        for _ in range(count):
            since = time.perf_counter()
            sock.sendall(b"x" * 100)
            sock.recv(100, socket.MSG_WAITALL)
            took.append((time.perf_counter() - since) * 1e3)
    return took


def percentile(took: list[float], hundredths: int) -> float:
    return sorted(took)[len(took) * hundredths // 100]


def connections(port: int, count: int) -> float:
    """Return how many connections a second are made, used and closed, one after the other."""
    since = time.perf_counter()
    for _ in range(count):
        with connect(port) as sock:
            sock.sendall(b"ex")
            sock.recv(1)
    return count / (time.perf_counter() - since)


def kept(port: int, count: int) -> float:
    """Return how many requests a second are answered on `KEPT` connections that stay open.

    Each has a request of 100 bytes under way; one thread serves them all, as a browser would. The
    first answers do not count: new connections are measured by themselves.
    """
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        socks = [stack.enter_context(connect(port)) for _ in range(KEPT)]
        for sock in socks:
            sock.sendall(b"k" + b"x" * 100)
        for sock in socks:
            sock.recv(100, socket.MSG_WAITALL)
            selector.register(sock, selectors.EVENT_READ, sock)
        for sock in socks:
            sock.sendall(b"x" * 100)
        answered, since = 0, time.perf_counter()
        while answered < count:
            for key, _ in selector.select():
                key.data.recv(100, socket.MSG_WAITALL)
                key.data.sendall(b"x" * 100)
                answered += 1
        return answered / (time.perf_counter() - since)


@dataclass(frozen=True)
class Spent:
    """What a process has spent so far: microseconds of CPU time, and how often it went to sleep."""

    cpu: float
    sleeps: int

    @classmethod
    def by(cls, process: int) -> Spent:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        cpu = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e3
        status = [line for task in tasks for line in (task / "status").read_text().splitlines()]
        slept = [line for line in status if line.startswith("voluntary_ctxt_switches")]
        return cls(cpu, sum(int(line.split()[1]) for line in slept))


@dataclass(frozen=True)
class Crowded:
    """Milliseconds of trips beside a download without end, and that download's MB/s."""

    took: list[float]
    speed: float


def trips_beside_a_download(bulk: int, small: int, count: int) -> Crowded:
    """Send small messages through one forward while another one downloads."""
    received = [0]
    with connect(bulk) as sock:
        sock.sendall(b"d" + (1 << 20).to_bytes(4, "big"))
        reader = threading.Thread(target=_read_until_closed, args=(sock, received))
        reader.start()
        time.sleep(_SETTLE_SECONDS)
        since, before = time.perf_counter(), received[0]
        took = trips(small, count)
        speed = (received[0] - before) / (time.perf_counter() - since) / 1e6
        sock.shutdown(socket.SHUT_RDWR)
        reader.join()
    return Crowded(took, speed)


def _read_until_closed(sock: socket.socket, received: list[int]) -> None:
    buffer = bytearray(1 << 20)
    with suppress(ConnectionResetError):
        while got := sock.recv_into(buffer):
            received[0] += got
