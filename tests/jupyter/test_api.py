"""Jupyter's REST API and a kernel's WebSocket, against servers that answer as they are told."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from jlremote.errors import JlrError
from jlremote.jupyter import api as jupyter_api
from jlremote.jupyter.api import (
    Access,
    AccessRefused,
    JupyterApi,
    Kernel,
    NoAnswer,
    NoWebSocket,
    open_socket,
)
from jlremote.place.host.contract import OddAnswer
from tests.lab.programs import PATIENCE
from tests.link.fakes import new_server


class Answers(HTTPServer):
    """Answers by method and path; what it has no answer for is 404.

    Attributes:
        answers: status and content.
        asked: method, path and token of each request.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    """Looks the answer up."""

    server: Answers

    def do_GET(self) -> None:
        """Answer any method; the body of a request is not looked at."""
        self.server.asked.append((self.command, self.path, self.headers["Authorization"]))
        status, content = self.server.answers.get(f"{self.command} {self.path}", (404, None))
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def jupyter() -> Iterator[Answers]:
    with Answers() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


def api(jupyter: Answers, *, token: str = "secret") -> JupyterApi:
    return JupyterApi(jupyter.server_port, replace(new_server(), token=token), timeout=PATIENCE)


STATUS = "GET /cont1/api/status"


def test_the_token_goes_into_a_header_and_not_into_the_path(jupyter: Answers) -> None:
    jupyter.answers[STATUS] = (200, {"kernels": 1})
    assert api(jupyter).status() == {"kernels": 1}
    assert jupyter.asked == [("GET", "/cont1/api/status", "token secret")]


@pytest.mark.parametrize(
    ("token", "status", "access"),
    [
        ("secret", 403, Access.TOKEN),
        ("", 200, Access.OPEN),
        ("", 302, Access.PASSWORD),
        ("", 401, Access.PASSWORD),
        ("", 403, Access.PASSWORD),
    ],
)
def test_the_access_is_known_by_the_answer(
    jupyter: Answers, token: str, status: int, access: Access
) -> None:
    jupyter.answers[STATUS] = (status, {})
    assert api(jupyter, token=token).access() is access


def test_a_refused_password_is_not_the_same_as_a_refused_token(jupyter: Answers) -> None:
    jupyter.answers[STATUS] = (403, {})
    with pytest.raises(AccessRefused):
        api(jupyter, token="").status()
    with pytest.raises(JlrError, match="Jupyter answers 403 Forbidden to `api/status`"):
        api(jupyter).status()


def test_kernels_have_the_paths_of_their_notebooks(jupyter: Answers) -> None:
    running = [
        {"id": "1", "name": "python3", "execution_state": "busy", "last_activity": "then"},
        {"id": "2", "name": "julia", "execution_state": "idle", "last_activity": "later"},
    ]
    notebooks = [{"kernel": {"id": "1"}, "path": "work/a.ipynb"}]
    jupyter.answers["GET /cont1/api/kernels?no_track_activity=1"] = (200, running)
    jupyter.answers["GET /cont1/api/sessions?no_track_activity=1"] = (200, notebooks)
    assert api(jupyter).kernels() == (
        Kernel("work/a.ipynb", "busy", "then", id="1"),
        Kernel("julia", "idle", "later", id="2"),
    )


def test_a_port_without_a_server_gives_no_answer(jupyter: Answers) -> None:
    port = jupyter.server_port
    jupyter.server_close()
    with pytest.raises(NoAnswer, match=f"no answer from Jupyter through 127.0.0.1:{port}"):
        JupyterApi(port, new_server(), timeout=1).status()


@pytest.mark.parametrize("id_", ["--end", "", "a\0b", "a\nb", "\0"])
def test_a_kernels_id_that_cannot_be_an_argument_is_refused(jupyter: Answers, id_: str) -> None:
    jupyter.answers["POST /cont1/api/kernels"] = (201, {"id": id_})
    with pytest.raises(OddAnswer):
        api(jupyter).start_kernel()
    jupyter.answers["GET /cont1/api/kernelspecs"] = (200, {"kernelspecs": {id_: {"spec": {}}}})
    with pytest.raises(OddAnswer):
        api(jupyter).kernel_specs()


def test_a_server_does_not_lead_the_token_to_another_address() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as jupyter,
        socket.create_server(("127.0.0.1", 0)) as elsewhere,
    ):
        elsewhere.setblocking(False)
        asked = JupyterApi(jupyter.getsockname()[1], new_server(), timeout=PATIENCE)
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
            open_socket(asked, "42")
        answering.join()
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def test_a_refused_connection_is_one_clear_error() -> None:
    nothing = JupyterApi(9, new_server(), timeout=1)  # none listens on the discard port
    with pytest.raises(NoWebSocket, match="no WebSocket through") as caught:
        open_socket(nothing, "42")
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
