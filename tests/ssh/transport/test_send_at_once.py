"""The connection's socket: how much waits in it."""

from __future__ import annotations

import socket
from contextlib import suppress

from jlremote.ssh.transport.packetizer import send_at_once


def test_little_waits_in_the_socket_for_a_line_that_is_full() -> None:
    """A keystroke goes behind it; the system would take 4 MB."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
        with socket.create_connection(listener.getsockname()) as ours, listener.accept()[0]:
            send_at_once(ours)
            ours.setblocking(False)
            taken = 0
            with suppress(BlockingIOError):
                while True:
                    taken += ours.send(bytes(32 << 10))
            assert taken < 1 << 20
