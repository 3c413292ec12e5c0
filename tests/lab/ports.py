"""Ports of 127.0.0.1 for the tests of one process.

A port that is merely free now may be another test's a moment later, or the near end of any
connection on this machine. These come from a block that the process alone holds, below the range
that Linux gives to outgoing connections.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import cycle
from typing import IO

import psutil

from tests.lab.place import LabError, open_lock, root, try_lock

FIRST, END = 10240, 32768  # /proc/sys/net/ipv4/ip_local_port_range begins at 32768
BLOCK = 512
STEP = 8  # a test whose port is taken is given the next ones


def free_port() -> int:
    """Return a port on which nothing listens, and which no other process of tests gets."""
    _, ports = _claimed()
    for _ in range(BLOCK // STEP):
        port = next(ports)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise LabError(f"all ports from {port - BLOCK} to {port} are in use")


def listens(port: int) -> bool:
    connections = psutil.net_connections("tcp4")
    return any(c.laddr.port == port for c in connections if c.status == "LISTEN" and c.laddr)


@cache
def _claimed() -> tuple[IO[str], Iterator[int]]:
    """Claim a block for as long as this process runs; the open file is the claim."""
    for start in range(FIRST, END, BLOCK):
        lock = open_lock(root() / "ports" / f"{start}.lock")
        if try_lock(lock):
            return lock, cycle(range(start, start + BLOCK, STEP))
        lock.close()
    raise LabError("too many test processes on this machine: no block of ports is left")


@contextmanager
def held(port: int) -> Iterator[None]:
    """Listen on a port of 127.0.0.1, as any other program of the laptop."""
    with socket.create_server(("127.0.0.1", port)):
        yield


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
