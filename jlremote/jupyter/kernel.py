"""A kernel's WebSocket, through the local end of the forward.

Source: Jupyter's messaging, https://jupyter-client.readthedocs.io/en/stable/messaging.html; servers
of all versions speak it as JSON to a client that asks for no subprotocol.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from jlremote.errors import JlrError, Unreachable
from jlremote.jupyter.api import JupyterApi
from jlremote.place.host.addresses import LOCALHOST
from jlremote.place.host.contract import ODD
from jlremote.untrusted import document

# A kernel's first start imports IPython, and the host may be busy.
ANSWER_SECONDS = 60.0
MOST_BYTES = 256 << 20  # of one message: a video is one, too


class NoWebSocket(Unreachable):
    """HTTP passes the forward, and WebSocket does not."""


class KernelLine:
    """The WebSocket of one kernel."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    def result(self, code: str, timeout: float = ANSWER_SECONDS) -> str:
        """Run `code` and return its value, as the kernel would show it.

        Raises:
            JlrError: it has no value, fails, or does not end within `timeout` seconds.
        """
        from websocket import WebSocketException

        deadline = time.monotonic() + timeout
        try:
            request = self._send(code)
            while time.monotonic() < deadline:
                self._socket.settimeout(max(0.1, deadline - time.monotonic()))
                message = document(self._socket.recv())
                if message["parent_header"].get("msg_id") == request:
                    found = _result(message)
                    if found is not None:
                        return found
        except (WebSocketException, OSError, *ODD) as error:
            reason = str(error) or type(error).__name__
            raise JlrError(f"the kernel did not answer `{code}`: {reason}") from error
        raise JlrError(f"the kernel did not answer `{code}` within {timeout:g} s")

    def _send(self, code: str) -> str:
        header = {"msg_id": uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        self._socket.send(json.dumps(message | {"channel": "shell"}))
        return header["msg_id"]


class KernelSocket:
    """The WebSocket of one kernel, for programs that pass its messages on."""

    def __init__(self, api: JupyterApi, kernel: str, session: str, received: int) -> None:
        """Open it; under the same `session` Jupyter sends what it kept since the last one.

        A server that jlr launched goes on behind the messages that were `received` so far.

        Raises:
            NoWebSocket: it cannot be opened.
        """
        self._socket = _connection(api, kernel, f"?session_id={session}&received={received}")
        self._socket.settimeout(None)

    def send(self, data: str | bytes) -> None:
        """Send a message.

        Raises:
            NoWebSocket: the connection is lost.
        """
        with _told_of_loss():
            self._socket.send(data, 0x2 if isinstance(data, bytes) else 0x1)

    def receive(self) -> str | bytes:
        """Return the next message.

        Raises:
            NoWebSocket: the connection is lost.
        """
        with _told_of_loss():
            data: str | bytes = self._socket.recv()
        if not data:
            raise NoWebSocket("Jupyter has closed the kernel's WebSocket")
        return data

    def close(self) -> None:
        with _told_of_loss(), suppress(OSError):
            self._socket.close(timeout=0)


@contextmanager
def _told_of_loss() -> Iterator[None]:
    from websocket import WebSocketException

    try:
        yield
    except (WebSocketException, OSError, *ODD) as error:
        raise NoWebSocket(f"the kernel's WebSocket is lost: {error}") from error


@contextmanager
def kernel_line(api: JupyterApi, kernel: str) -> Iterator[KernelLine]:
    """Open a WebSocket to a kernel.

    Raises:
        NoWebSocket: it cannot be opened.
    """
    opened = _connection(api, kernel)
    try:
        yield KernelLine(opened)
    finally:
        opened.close()


def _connection(api: JupyterApi, kernel: str, query: str = "") -> Any:
    from websocket import WebSocket, WebSocketException, create_connection

    class Bounded(WebSocket):
        """Takes no more than `MOST_BYTES` for one message: the library has no limit."""

        left = MOST_BYTES

        def recv(self) -> Any:
            self.left = MOST_BYTES
            return super().recv()

        def _recv(self, bufsize: int) -> bytes:
            data: bytes = super()._recv(bufsize)  # type: ignore[no-untyped-call]
            self.left -= len(data)
            if self.left < 0:
                raise WebSocketException(f"a message of over {MOST_BYTES >> 20} MiB")
            return data

    base = f"{LOCALHOST}:{api.local_port}{quote(api.server.base_url)}"
    try:
        connected = socket.create_connection((LOCALHOST, api.local_port), api.timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return create_connection(
            f"ws://{base}api/kernels/{kernel}/channels{query}",
            header=[f"{name}: {value}" for name, value in api.headers.items()],
            timeout=api.timeout,
            # Its own would go to a proxy of the environment: `http_no_proxy` counts only with one
            # that is given, https://github.com/websocket-client/websocket-client/issues/585
            socket=connected,
            suppress_origin=True,  # which limits the rate of output: see `in_server`
            skip_utf8_validation=True,  # it takes a second for 5 MB; decoding says the same
            redirect_limit=0,  # nor does the far side say where to connect
            class_=Bounded,
        )
    except (WebSocketException, OSError) as error:
        # The exception of a refused handshake quotes the whole answer.
        reason = str(error).partition("-+-+-")[0].strip() or type(error).__name__
        raise NoWebSocket(
            f"no WebSocket through {LOCALHOST}:{api.local_port}: {reason}",
            hint="`jlr logs` may say why",
        ) from error


def _result(message: dict[str, Any]) -> str | None:
    """Return the result in a message, `None` for none yet; `JlrError` if none will come."""
    content = message["content"]
    if message["msg_type"] == "execute_result":
        return str(content["data"]["text/plain"])
    if message["msg_type"] == "error":
        raise JlrError(f"the kernel failed: {content['ename']}: {content['evalue']}")
    if content.get("execution_state") == "idle":
        raise JlrError("the kernel gave no result")
    return None
