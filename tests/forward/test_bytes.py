"""What goes in at one end comes out at the other, as through `ssh -L`."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from jlremote.ssh.forward.forwarder import TunnelForward
from jlremote.ssh.transport.algorithms import Offer
from tests.forward.parts import (
    MEGABYTE,
    Server,
    SwitchedGateway,
    ask,
    ask_at_once,
    connect,
    count_key_exchanges,
    counts,
    is_turned_away,
    new_transport,
    read_all,
    relay_processes,
    same,
    serving,
    through_relay,
)
from tests.lab.programs import PATIENCE
from tests.lab.sshd import SSHServer
from tests.link.fakes import until


@pytest.fixture
def up(transport: Any, gateway: SwitchedGateway, echo_server: Server) -> SwitchedGateway:
    gateway.up(transport, echo_server.target)
    return gateway


LeadTo = Callable[[Server], None]


@pytest.fixture(params=["channel", "relay"])
def lead_to(request: pytest.FixtureRequest, transport: Any, gateway: SwitchedGateway) -> LeadTo:
    """Lead the forward to a server: by a channel of its own, or by a relay there."""
    is_relayed = request.param == "relay"
    return lambda server: gateway.up(
        transport, through_relay(server) if is_relayed else server.target
    )


@pytest.mark.parametrize("size", [0, 1000, 9 * MEGABYTE + 17])
def test_bytes_come_back_unchanged(
    lead_to: LeadTo, forward: TunnelForward, echo_server: Server, size: int
) -> None:
    lead_to(echo_server)
    question = os.urandom(size)
    assert same(ask_at_once(forward.local_port, question), question)


def test_bytes_are_equal_across_key_exchanges(
    up: SwitchedGateway, forward: TunnelForward, transport: Any
) -> None:
    transport.packetizer.REKEY_BYTES = 3 * MEGABYTE
    transport.renegotiate_keys()  # what is agreed from now on is for so many bytes
    exchanges = count_key_exchanges(transport)
    question = os.urandom(20 * MEGABYTE)
    assert same(ask_at_once(forward.local_port, question), question)
    assert len(exchanges) >= 5


@pytest.mark.usefixtures("forward_sshd")  # where that one runs, so does another
def test_bytes_are_equal_across_key_exchanges_that_the_server_wants(
    forward_key: Path, gateway: SwitchedGateway, forward: TunnelForward, echo_server: Server
) -> None:
    options = ("PermitRootLogin yes", "LogLevel ERROR", "RekeyLimit 3M")
    with SSHServer(forward_key.with_suffix(".pub"), options=options) as sshd:
        transport = new_transport(sshd, forward_key)
        exchanges = count_key_exchanges(transport)
        gateway.up(transport, echo_server.target)
        question = os.urandom(20 * MEGABYTE)
        assert same(ask_at_once(forward.local_port, question), question)
        assert len(exchanges) >= 5
        transport.close()


@pytest.mark.parametrize("cipher", ["aes128-gcm@openssh.com", "aes256-ctr"])
@pytest.mark.parametrize("compression", [False, True])
def test_bytes_are_equal_with_every_kind_of_cipher(
    cipher: str,
    compression: bool,
    forward_sshd: SSHServer,
    forward_key: Path,
    gateway: SwitchedGateway,
    forward: TunnelForward,
    echo_server: Server,
) -> None:
    offer = Offer(ciphers=(cipher,), compression=compression)
    transport = new_transport(forward_sshd, forward_key, offer)
    assert transport.local_cipher == cipher
    gateway.up(transport, echo_server.target)
    question = os.urandom(2 * MEGABYTE) + bytes(2 * MEGABYTE)
    assert same(ask_at_once(forward.local_port, question), question)
    transport.close()


def test_the_far_end_may_finish_first_and_still_read(
    lead_to: LeadTo, forward: TunnelForward
) -> None:
    heard: list[bytes] = []

    def speak_first(sock: socket.socket) -> None:
        sock.sendall(b"all I have to say")
        sock.shutdown(socket.SHUT_WR)
        heard.append(read_all(sock))

    with serving(speak_first) as server:
        lead_to(server)
        with connect(forward.local_port) as sock:
            assert read_all(sock) == b"all I have to say"
            sock.sendall(b"x" * MEGABYTE)
            sock.shutdown(socket.SHUT_WR)
            until(lambda: heard == [b"x" * MEGABYTE], "the other half")


def test_the_near_end_may_finish_first_and_still_read(
    lead_to: LeadTo, forward: TunnelForward
) -> None:
    def answer_after_the_end(sock: socket.socket) -> None:
        sock.sendall(b"%d" % len(read_all(sock)))

    with serving(answer_after_the_end) as server:
        lead_to(server)
        assert ask(forward.local_port, b"x" * 100_000) == b"100000"


def test_a_reset_reaches_the_far_end(lead_to: LeadTo, forward: TunnelForward) -> None:
    ended = threading.Event()

    def wait_for_the_end(sock: socket.socket) -> None:
        try:
            read_all(sock)
        finally:
            ended.set()

    with serving(wait_for_the_end) as server:
        lead_to(server)
        sock = connect(forward.local_port)
        sock.sendall(b"hello")
        until(lambda: counts(forward) == (1, 0), "the connection")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        assert ended.wait(PATIENCE)
        until(lambda: counts(forward) == (0, 0), "the end of the connection")


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


def test_a_closed_port_closes_the_connection_at_once(
    lead_to: LeadTo, forward: TunnelForward
) -> None:
    with serving(socket.socket.close) as server:
        pass
    lead_to(server)
    assert is_turned_away(forward.local_port, b"hello")
    refused = ("Connection refused", f"nothing listens on port {server.port} there")
    assert forward.failure in refused


def test_three_hundred_connections_at_once(
    lead_to: LeadTo, forward: TunnelForward, echo_server: Server
) -> None:
    lead_to(echo_server)
    socks = [connect(forward.local_port) for _ in range(300)]
    for number, sock in enumerate(socks):
        sock.sendall(b"%06d" % number)
    for number, sock in enumerate(socks):
        assert sock.recv(6, socket.MSG_WAITALL) == b"%06d" % number
    assert counts(forward) == (300, 0)
    assert len(relay_processes(echo_server)) <= 1
    for sock in socks:
        sock.close()
    until(lambda: counts(forward) == (0, 0), "the end of the connections")
