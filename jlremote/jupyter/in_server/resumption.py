"""Send a page again what it may not have received, once it connects anew.

A network that falls silent leaves Jupyter a WebSocket that seems alive. What Jupyter writes into it
is lost, and a cell that ends meanwhile stays at `[*]`. So each message is kept until the page is
known to have it: the browser answers pings in the order of what it receives. What is left then
goes before what Jupyter itself keeps while a page is away.

It also notes which cell a request is of, for the recorder: JupyterLab says so in the request alone.

It needs jupyter_server 2.
"""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketClosedError

_Connection: Any = ZMQChannelsWebsocketConnection
_message: Any = deserialize_msg_from_ws_v1


class ResumableConnection(_Connection):  # type: ignore[misc]
    """A kernel's WebSocket to a page."""

    MOST_BYTES = 64 << 20  # that a page which receives nothing costs; then the oldest go
    PAUSE_SECONDS = 0.2
    MARK = b"jlr"
    NOTES_BYTES = 1 << 20
    cells = ""  # the file of the notes, empty for none
    limit_rate: bool

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._sent: deque[tuple[int, str, list[Any], int]] = deque()
        self._bytes = 0
        self._number = 0
        self._asked = False
        self._over = False
        handler: Any = self.websocket_handler
        self._on_pong = handler.on_pong
        handler.on_pong = self._answered

    def handle_incoming_message(self, incoming_msg: Any) -> None:
        """Note the cell of a request before the kernel has it."""
        if self.cells:
            with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
                self._note_cell(incoming_msg)
        super().handle_incoming_message(incoming_msg)

    def _note_cell(self, message: Any) -> None:
        if isinstance(message, str):
            told = json.loads(message) if '"cellId"' in message else {}
            header, metadata = told.get("header", {}), told.get("metadata", {})
        elif b'"cellId"' in message:
            _, (header, _, metadata, *_) = _message(message)
            header, metadata = json.loads(header), json.loads(metadata)
        else:
            return
        line = f"{header['msg_id']} {metadata['cellId']}"
        if len(line) > 1000 or line.count(" ") != 1 or not line.isprintable():
            return
        notes = Path(self.cells)
        if notes.exists() and notes.stat().st_size > self.NOTES_BYTES:
            notes.unlink()  # the recorder has it open
        with open(notes, "a", opener=lambda path, how: os.open(path, how, 0o600)) as file:
            file.write(f"{line}\n")

    def handle_outgoing_message(self, stream: Any, outgoing_msg: list[Any]) -> None:
        """Keep a message that is sent."""
        channel = stream if isinstance(stream, str) else stream.channel
        size = sum(map(len, outgoing_msg))
        self._number += 1
        self._bytes += size
        self._sent.append((self._number, channel, outgoing_msg, size))
        while self._bytes > self.MOST_BYTES:
            self._bytes -= self._sent.popleft()[3]
        super().handle_outgoing_message(stream, outgoing_msg)
        self._ask()

    def _ask(self) -> None:
        """Ping the page, unless a ping is under way."""
        if self._sent and not self._asked and not self._over:
            try:
                self.websocket_handler.ping(self.MARK + str(self._number).encode())
            except WebSocketClosedError:
                return
            self._asked = True

    def _answered(self, data: bytes) -> None:
        """Forget what the page has."""
        self._on_pong(data)
        if not data.startswith(self.MARK):
            return
        number = int(data[len(self.MARK) :])
        while self._sent and self._sent[0][0] <= number:
            self._bytes -= self._sent.popleft()[3]
        IOLoop.current().call_later(self.PAUSE_SECONDS, self._ask_again)

    def _ask_again(self) -> None:
        self._asked = False
        self._ask()

    def connect(self) -> Any:
        """Begin with what was kept, whose rate is no reason to leave any of it out."""
        limited, self.limit_rate = self.limit_rate, False

        def limit(_: Any) -> None:
            self.limit_rate = limited

        connected = super().connect()
        if connected is None:
            limit(None)
        else:
            connected.add_done_callback(limit)
        return connected

    def disconnect(self) -> None:
        """End; what the page may not have goes before what Jupyter keeps for it from now on."""
        if self._over:  # replaced by the page's next connection, and closed only now
            return
        self._over = True
        super().disconnect()
        kept = self.multi_kernel_manager._kernel_buffers.get(self.kernel_id)
        if kept and kept["channels"] is self.channels:
            kept["buffer"][:0] = [(channel, message) for _, channel, message, _ in self._sent]
        self._sent.clear()

    async def _register_session(self) -> None:
        """Take the place of the page's last connection, which may seem alive."""
        last = self._open_sessions.get(f"{self.kernel_id}:{self.session.session}")
        connection = getattr(last, "connection", None)
        if last is not None and connection is not None:
            connection.disconnect()
            last.close()
        await super()._register_session()
