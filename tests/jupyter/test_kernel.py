"""A kernel's WebSocket: where it leads, what refuses it, and messages without an end."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from jlremote.jupyter import api as jupyter_api
from jlremote.jupyter.api import JupyterApi, NoWebSocket, open_socket
from tests.lab.programs import PATIENCE
from tests.link.fakes import new_server


def test_a_server_does_not_lead_the_token_to_another_address() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as jupyter,
        socket.create_server(("127.0.0.1", 0)) as elsewhere,
    ):
        elsewhere.setblocking(False)
        api = JupyterApi(jupyter.getsockname()[1], new_server(), timeout=PATIENCE)
        answer = (
            f"HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:{elsewhere.getsockname()[1]}/\r\n\r\n"
        )

        def answers() -> None:
            caller, _ = jupyter.accept()
            with caller:
                caller.recv(4096)
                caller.sendall(answer.encode())

        answering = threading.Thread(target=answers)
        answering.start()
        with pytest.raises(NoWebSocket):
            open_socket(api, "42")
        answering.join()
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def test_a_refused_connection_is_one_clear_error() -> None:
    api = JupyterApi(9, new_server(), timeout=1)  # nothing listens on the discard port
    with pytest.raises(NoWebSocket, match="no WebSocket through") as caught:
        open_socket(api, "42")
    assert caught.value.hint == "`jlr logs` may say why"


@contextmanager
def endless_messages() -> Iterator[int]:
    """Accept one WebSocket, and send one message in frames without end; yield the port."""

    def serve() -> None:
        with listener.accept()[0] as peer, suppress(OSError):
            request = peer.recv(65536)
            key = re.search(rb"Sec-WebSocket-Key: (\S+)", request)
            assert key is not None
            digest = hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
            accept = base64.b64encode(digest).decode()
            peer.sendall(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
            )
            kind = b"\x02"
            while True:
                peer.sendall(kind + b"\x7e\xff\xff" + bytes(65535))
                kind = b"\0"

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve)
        serving.start()
        yield listener.getsockname()[1]
        serving.join(PATIENCE)


def test_a_message_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jupyter_api, "MOST_MESSAGE_BYTES", 1 << 20)
    with endless_messages() as port:
        line = open_socket(JupyterApi(port, new_server()), "k")
        with pytest.raises(NoWebSocket, match="a message of over 1 MiB"):
            line.receive()
        line.close()
