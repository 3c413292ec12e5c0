"""A kernel's WebSocket, through the local end of the forward.

Source: Jupyter's messaging, https://jupyter-client.readthedocs.io/en/stable/messaging.html; servers
of all versions speak it as JSON to a client that asks for no subprotocol.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from jlremote.errors import Unreachable
from jlremote.jupyter.api import JupyterApi
from jlremote.place.host.addresses import LOCALHOST
from jlremote.place.host.contract import ODD

MOST_BYTES = 256 << 20  # of one message: a video is one, too


class NoWebSocket(Unreachable):
    """HTTP passes the forward, and WebSocket does not."""


class KernelSocket:
    """The WebSocket of one kernel."""

    def __init__(self, opened: Any) -> None:
        self._socket = opened

    def send(self, data: str | bytes) -> None:
        """Send a message; raise `NoWebSocket` if the connection is lost."""
        with _told_of_loss():
            self._socket.send(data, 0x2 if isinstance(data, bytes) else 0x1)

    def receive(self) -> str | bytes:
        """Return the next message; raise `NoWebSocket` if the connection is lost."""
        with _told_of_loss():
            self._socket.settimeout(None)
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
        reason = str(error) or type(error).__name__
        raise NoWebSocket(f"the kernel's WebSocket is lost: {reason}") from error


def open_socket(
    api: JupyterApi, kernel: str, session: str | None = None, received: int = 0
) -> KernelSocket:
    """Open a WebSocket; under the same `session` Jupyter sends what it kept since the last one.

    A server that jlr launched goes on behind the messages that were `received` so far.

    Raises:
        NoWebSocket: it cannot be opened.
    """
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

    query = "" if session is None else f"?session_id={session}&received={received}"
    base = f"{LOCALHOST}:{api.local_port}{quote(api.server.base_url)}"
    try:
        connected = socket.create_connection((LOCALHOST, api.local_port), api.timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened = create_connection(
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
    return KernelSocket(opened)
