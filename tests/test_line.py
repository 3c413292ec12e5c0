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


def test_all_bytes_and_the_end_of_the_stream_arrive(client: socket.socket) -> None:
    sent = bytes(range(256)) * 8192
    threading.Thread(target=send_all, args=(client, sent)).start()
    with client.makefile("rb") as answers:
        assert answers.read() == sent


def send_all(client: socket.socket, sent: bytes) -> None:
    client.sendall(sent)
    client.shutdown(socket.SHUT_WR)


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


def test_a_cut_line_ends_connections_and_takes_new_ones(line: Line, client: socket.socket) -> None:
    client.sendall(b"ping")
    assert client.recv(4) == b"ping"
    line.cut()
    assert client.recv(4) == b""
    with socket.create_connection(("127.0.0.1", line.port), timeout=5) as again:
        again.sendall(b"pong")
        assert again.recv(4) == b"pong"


def test_a_line_that_is_down_refuses_and_comes_back_on_its_port(line: Line) -> None:
    port = line.port
    line.take_down()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    line.bring_up()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as again:
        again.sendall(b"pong")
        assert again.recv(4) == b"pong"
    assert line.connections == 1
