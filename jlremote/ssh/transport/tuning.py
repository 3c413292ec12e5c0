"""Window sizes and limits that make SSH connections fast."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import Any

# OpenSSH's own first window; bytes.
FIRST_WINDOW = 2 << 20
LARGEST_PACKET = 32 << 10

_LARGEST_WINDOW = 16 << 20
# More would fill the line's own buffers, behind which other channels' messages wait.
_BYTES_PER_SECOND = 160e6

# Bytes that wait in the connection's socket while the line is full.
_UNSENT = 128 << 10


def window_for(round_trip: float) -> int:
    """Return the receive window in bytes of a channel whose reader keeps up.

    `round_trip` is in seconds.
    """
    return int(min(max(FIRST_WINDOW, round_trip * _BYTES_PER_SECOND), _LARGEST_WINDOW))


def send_at_once(sock: Any) -> None:
    """Let small messages go at once, also beside an upload.

    Nagle's algorithm costs 40 ms a message against delayed ACKs. And the system takes up to 4 MB
    that a slow line has no room for, behind which a keystroke waits: on 1 MB/s 2.2 s, with this
    limit 0.3 s, and uploads are as fast, on loopback as well as over 50 ms.
    """
    if isinstance(sock, socket.socket) and sock.family in {socket.AF_INET, socket.AF_INET6}:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # WSL 1 may not know it
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)


# Descriptors for the link itself: requests of commands, a new connection, files that it reads.
_RESERVED_DESCRIPTORS = 32


def has_descriptors_to_spare(one: int) -> bool:
    """Return whether more file descriptors are free than the link needs for itself.

    If local connections took all of them, no command could reach the link, and it could not read
    `known_hosts` or make a new connection. `one` is any open descriptor: a copy of it gets the
    lowest free number.
    """
    if sys.platform == "win32":
        return True  # no such limit
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lowest = os.dup(one)
    except OSError:
        return False
    os.close(lowest)
    return limit == resource.RLIM_INFINITY or lowest < limit - _RESERVED_DESCRIPTORS
