"""The lab's network delays, stalls, cuts and refuses connections as its methods say."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.lab.line import Line


@pytest.fixture
def echo() -> Iterator[int]:
    """A port of 127.0.0.1 that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def serve(server: socket.socket) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=send_back, args=(client,), daemon=True).start()


def send_back(client: socket.socket) -> None:
    with client:
        while data := client.recv(65536):
            client.sendall(data)


@pytest.fixture
def line(echo: int) -> Iterator[Line]:
    made = Line(echo)
    yield made
    made.close()


@pytest.fixture
def client(line: Line) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", line.port), timeout=5) as connected:
        yield connected


def test_a_slow_line_delays_both_directions(line: Line, client: socket.socket) -> None:
    line.delay = 0.1
    began = time.monotonic()
    client.sendall(b"ping")
    assert client.recv(4) == b"ping"
    assert 0.2 <= time.monotonic() - began < 2


def test_a_stalled_line_delivers_only_after_it_resumes(line: Line, client: socket.socket) -> None:
    line.stall()
    client.sendall(b"ping")
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.recv(4)
    line.resume()
    client.settimeout(5)
    assert client.recv(4) == b"ping"
