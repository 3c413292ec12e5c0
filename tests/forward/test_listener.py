"""The listener lives as long as the forward, whatever becomes of the connection to the host."""

from __future__ import annotations

import logging
import socket
import threading
from typing import Any

import psutil
import pytest

from jlremote.errors import Busy, NeedsAuthentication
from jlremote.place.host.addresses import Target, own_address
from jlremote.ssh.forward.connection_router import WaitLimits
from jlremote.ssh.forward.forwarder import TunnelForward
from tests.forward.parts import (
    Server,
    SwitchedGateway,
    ask,
    connect,
    counts,
    is_turned_away,
    new_transport,
    read_all,
)
from tests.lab.sshd import SSHServer
from tests.link.fakes import until

PAGE_LOAD = b"GET /lab HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/html,*/*\r\n\r\n"
POST = b"POST /api HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"


def test_it_listens_on_loopback_only(forward: TunnelForward) -> None:
    listening = {
        connection.laddr.ip
        for connection in psutil.Process().net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == forward.local_port
    }
    assert listening == {"127.0.0.1", own_address(forward.local_port), "::1"}


def test_another_program_cannot_take_the_address_that_browsers_try_first(
    gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("::1", forward.local_port), family=socket.AF_INET6)
    with pytest.raises(OSError, match="in use"):
        socket.create_server((own_address(forward.local_port), forward.local_port))
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        with pytest.raises(Busy, match=f"`{port}`"):
            TunnelForward(port, gateway).start()
        socket.create_server(("127.0.0.1", port)).close()  # released again


def test_a_connection_waits_for_the_gateway_and_is_served(
    gateway: SwitchedGateway, forward: TunnelForward, transport: Any, echo_server: Server
) -> None:
    with connect(forward.local_port) as sock:
        sock.sendall(b"early bird")
        sock.shutdown(socket.SHUT_WR)
        until(lambda: counts(forward) == (0, 1), "the connection")
        gateway.up(transport, echo_server.target)
        assert read_all(sock) == b"early bird"


def test_a_closed_port_gives_browsers_a_page_and_closes_other_connections(
    gateway: SwitchedGateway, forward: TunnelForward, transport: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    gateway.up(transport, Target("127.0.0.1", port))
    with connect(forward.local_port) as sock:
        sock.sendall(PAGE_LOAD % forward.local_port)
        page = read_all(sock)
    assert page.startswith(b"HTTP/1.1 503 ")
    assert b'http-equiv="refresh"' in page
    assert b"nothing answers there: " in page
    assert is_turned_away(forward.local_port, POST % forward.local_port)


def test_a_browser_that_asks_a_moment_after_it_connected_gets_the_page_too(
    gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    gateway.final = NeedsAuthentication("`lab` wants a password")
    with connect(forward.local_port) as sock:
        until(lambda: forward.failure is not None, "the host's last word")
        sock.sendall(PAGE_LOAD % forward.local_port)
        assert b"`lab` wants a password" in read_all(sock)


def test_the_port_survives_a_lost_connection(
    gateway: SwitchedGateway,
    forward: TunnelForward,
    forward_sshd: SSHServer,
    forward_key: Any,
    echo_server: Server,
) -> None:
    first = new_transport(forward_sshd, forward_key)
    gateway.up(first, echo_server.target)
    cut = connect(forward.local_port)
    cut.sendall(b"x")
    assert cut.recv(1) == b"x"
    forward_sshd.drop_connections()
    with pytest.raises(ConnectionResetError):
        cut.recv(1)
    cut.close()
    # The gateway still hands out the dead connection: it has not noticed yet.
    with connect(forward.local_port) as sock:
        sock.sendall(b"again")
        second = new_transport(forward_sshd, forward_key)
        gateway.up(second, echo_server.target)
        assert sock.recv(5, socket.MSG_WAITALL) == b"again"
    second.close()


def test_a_silent_host_does_not_hold_connections_for_ever(
    gateway: SwitchedGateway,
    forward: TunnelForward,
    forward_sshd: SSHServer,
    transport: Any,
    echo_server: Server,
) -> None:
    gateway.up(transport, echo_server.target)
    forward_sshd.freeze_connections()
    try:
        assert is_turned_away(forward.local_port, POST % forward.local_port)
    finally:
        forward_sshd.thaw_connections()
    assert ask(forward.local_port, b"thawed") == b"thawed"


def test_nothing_is_left_when_it_stops(
    gateway: SwitchedGateway, transport: Any, echo_server: Server
) -> None:
    gateway.up(transport, echo_server.target)
    process = psutil.Process()
    threads, descriptors = threading.active_count(), process.num_fds()
    forward = TunnelForward(0, gateway)
    forward.start()
    for _ in range(20):
        assert ask(forward.local_port, b"hello") == b"hello"
    left_open = connect(forward.local_port)
    left_open.sendall(b"x")
    assert left_open.recv(1) == b"x"
    forward.stop()
    with pytest.raises(ConnectionRefusedError):
        connect(forward.local_port)
    left_open.close()
    until(lambda: threading.active_count() <= threads, "the end of the threads")
    until(lambda: process.num_fds() <= descriptors, "the end of the file descriptors")
    until(lambda: len(transport._channels) == 0, "the far end's word that it has closed them too")
    assert transport.is_active()


def test_it_logs_nothing_and_shows_only_its_port(
    gateway: SwitchedGateway, capfd: pytest.CaptureFixture[str]
) -> None:
    forward = TunnelForward(0, gateway, limits=WaitLimits(connection=0.3, page_load=0.1))
    forward.start()
    assert repr(forward) == str(forward) == f"TunnelForward(127.0.0.1:{forward.local_port})"
    assert is_turned_away(forward.local_port, b"nobody")
    forward.stop()
    assert capfd.readouterr().err == ""
    for name in ("sshtunnel.SSHTunnelForwarder", "paramiko.transport", "jlremote"):
        assert logging.getLogger(name).handlers == []
