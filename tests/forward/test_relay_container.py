"""The relay where it belongs: in a container whose server listens on its own loopback only."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import paramiko
import pytest

from jlremote.place.host.addresses import Target
from jlremote.ssh.forward.forwarder import TunnelForward
from jlremote.ssh.transport.algorithms import Offer
from jlremote.ssh.transport.transport import Transport
from tests.forward.parts import SwitchedGateway, connect, read_all
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.place import LabError
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.link.fakes import until

PORT = 8899
SERVER = (
    "import http.server, socketserver\n"
    f"address = ('127.0.0.1', {PORT})\n"
    "socketserver.ThreadingTCPServer(address, http.server.SimpleHTTPRequestHandler).serve_forever()"
)


@pytest.fixture
def lab_transport(sshd: SSHServer, account: Account, keys: Keys) -> Iterator[Any]:
    transport = Transport(socket.create_connection(("127.0.0.1", sshd.port)), Offer())
    transport.handshake(10)
    transport.auth_publickey(account.name, paramiko.Ed25519Key(filename=str(keys.private)))
    yield transport
    transport.close()


@pytest.fixture
def served(container: ContainerFactory) -> Container:
    """A container with a web server that only the container itself reaches."""
    started = container("lab/jupyter", "python3", "-c", SERVER)
    probe = f"import socket; socket.create_connection(('127.0.0.1', {PORT}))"

    def listens() -> bool:
        with contextlib.suppress(LabError):
            started.execute("python3", "-c", probe)
            return True
        return False

    until(listens, "the server in the container", timeout=30)
    return started


def get(port: int) -> bytes:
    with connect(port) as sock:
        sock.sendall(b"GET /etc/hostname HTTP/1.0\r\nHost: localhost:%d\r\n\r\n" % port)
        return read_all(sock)


def test_a_server_on_the_containers_loopback_is_reached(
    served: Container, lab_transport: Any, gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    relay = ("docker", "exec", "--interactive", served.name, "python3")
    gateway.up(lab_transport, Target("127.0.0.1", PORT, relay))
    hostname = served.execute("cat", "/etc/hostname").strip()
    for _ in range(20):
        answer = get(forward.local_port)
        assert answer.startswith(b"HTTP/1.0 200")
        assert answer.endswith(hostname.encode() + b"\n")


def test_a_missing_container_is_reported(
    served: Container, lab_transport: Any, gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    relay = ("docker", "exec", "--interactive", served.name, "python3")
    gateway.up(lab_transport, Target("127.0.0.1", PORT, relay))
    assert get(forward.local_port).startswith(b"HTTP/1.0 200")
    served.engine.docker("stop", "--time", "1", served.name)
    with connect(forward.local_port) as sock:
        sock.settimeout(3)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
    assert "is not running" in (forward.failure or "")
