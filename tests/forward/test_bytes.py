"""What goes in at one end comes out at the other, as through `ssh -L`."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import threading
from typing import Any

import psutil
import pytest

from jlremote.host.target import Target
from jlremote.ssh.forwarder import TunnelForward
from tests.forward.parts import (
    Server,
    SwitchedGateway,
    ask,
    connect,
    read_all,
    serving,
    until,
)

MEGABYTE = 1 << 20


@pytest.fixture
def up(transport: Any, gateway: SwitchedGateway, echo_server: Server) -> SwitchedGateway:
    gateway.up(transport, echo_server.target)
    return gateway


@pytest.mark.parametrize("size", [0, 1, 1000, 32768, 3 * MEGABYTE + 17])
def test_bytes_come_back_unchanged(up: SwitchedGateway, forward: TunnelForward, size: int) -> None:
    question = os.urandom(size)
    assert ask(forward.local_port, question) == question


def count_key_exchanges(transport: Any) -> list[str]:
    """Return a list that gets an entry with every exchange from now on."""
    exchanges: list[str] = []
    activate = transport._activate_inbound

    def noticed() -> None:
        exchanges.append("done")
        activate()

    transport._activate_inbound = noticed
    return exchanges


def test_bytes_are_equal_across_key_exchanges(
    up: SwitchedGateway, forward: TunnelForward, transport: Any
) -> None:
    transport.packetizer.REKEY_BYTES = 3 * MEGABYTE
    exchanges = count_key_exchanges(transport)
    question = os.urandom(40 * MEGABYTE)
    answer: list[bytes] = []
    with connect(forward.local_port) as sock:
        reader = threading.Thread(target=lambda: answer.append(read_all(sock)))
        reader.start()
        sock.sendall(question)
        sock.shutdown(socket.SHUT_WR)
        reader.join(60)
    assert hashlib.sha256(answer[0]).digest() == hashlib.sha256(question).digest()
    assert len(exchanges) >= 5


def test_the_far_end_may_end_first_and_still_read(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    heard: list[bytes] = []

    def speak_first(sock: socket.socket) -> None:
        sock.sendall(b"all I have to say")
        sock.shutdown(socket.SHUT_WR)
        heard.append(read_all(sock))

    with serving(speak_first) as server:
        gateway.up(transport, server.target)
        with connect(forward.local_port) as sock:
            assert read_all(sock) == b"all I have to say"
            sock.sendall(b"I heard you")
            sock.shutdown(socket.SHUT_WR)
            until(lambda: heard == [b"I heard you"], "the other half")


def test_the_near_end_may_end_first_and_still_read(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    def answer_after_the_end(sock: socket.socket) -> None:
        sock.sendall(b"%d" % len(read_all(sock)))

    with serving(answer_after_the_end) as server:
        gateway.up(transport, server.target)
        assert ask(forward.local_port, b"x" * 100_000) == b"100000"


def test_a_reset_reaches_the_far_end(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    ended = threading.Event()

    def wait_for_the_end(sock: socket.socket) -> None:
        try:
            read_all(sock)
        finally:
            ended.set()

    with serving(wait_for_the_end) as server:
        gateway.up(transport, server.target)
        sock = connect(forward.local_port)
        sock.sendall(b"hello")
        until(lambda: forward.traffic().open == 1, "the connection")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        assert ended.wait(10)
        until(lambda: forward.traffic().open == 0, "the end of the connection")


def test_a_far_end_that_closes_ends_the_connection(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    with serving(lambda sock: sock.sendall(b"bye")) as server:
        gateway.up(transport, server.target)
        assert ask(forward.local_port, b"") == b"bye"
        until(lambda: forward.traffic().open == 0, "the end of the connection")


def test_a_slow_reader_holds_no_more_than_the_window(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    def send_without_end(sock: socket.socket) -> None:
        block = b"z" * MEGABYTE
        while True:
            sock.sendall(block)

    with serving(send_without_end) as server:
        gateway.up(transport, server.target)
        before = psutil.Process().memory_info().rss
        stuck = [connect(forward.local_port) for _ in range(5)]
        for sock in stuck:
            assert sock.recv(1) == b"z"
        with serving(lambda sock: sock.sendall(b"quick")) as other:
            gateway.up(transport, other.target)
            assert ask(forward.local_port, b"") == b"quick", "the others are not held up"
        grown = psutil.Process().memory_info().rss - before
        assert grown < 5 * 6 * MEGABYTE
        for sock in stuck:
            sock.close()


def test_a_target_where_nobody_listens_closes_at_once(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    gateway.up(transport, Target("127.0.0.1", port))
    with connect(forward.local_port) as sock:
        sock.settimeout(2)
        assert sock.recv(1) == b""
    assert "refused" in (forward.traffic().last_failure or "").lower()


def test_three_hundred_connections_at_once(up: SwitchedGateway, forward: TunnelForward) -> None:
    socks = [connect(forward.local_port) for _ in range(300)]
    for number, sock in enumerate(socks):
        sock.sendall(b"%06d" % number)
    for number, sock in enumerate(socks):
        assert sock.recv(6, socket.MSG_WAITALL) == b"%06d" % number
    assert forward.traffic().open == 300
    for sock in socks:
        sock.close()
    until(lambda: forward.traffic().open == 0, "the end of the connections")
    assert forward.traffic().total == 300
