"""Send a page again what it may not have received, once it connects anew.

A network that falls silent leaves Jupyter a WebSocket that seems alive. What Jupyter writes into it
is lost, and a cell that ends meanwhile stays at `[*]`. So each message is kept until the page is
known to have it: the browser answers pings in the order of what it receives. What is left then
goes before what Jupyter itself keeps while a page is away.

It also notes which cell a request is of, for the recorder: JupyterLab says so in the request alone,
from jupyter_server 2 on.

It is for each server since Notebook 6, on Python 3.6 and newer.
"""
# ruff: noqa: UP006, UP035 - Python 3.6 has no newer form of these

import json
import os
from collections import deque
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Deque, List, Tuple

from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketClosedError

_Connection: Any = object
try:
    from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1
    from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
except ImportError:  # older than jupyter_server 2
    pass
else:
    _message: Any = deserialize_msg_from_ws_v1
    _Connection = ZMQChannelsWebsocketConnection


class Unconfirmed:
    """What was sent to a page that may not have it."""

    MOST_BYTES = 64 << 20  # that a page which receives nothing costs; then the oldest go
    PAUSE_SECONDS = 0.2
    MARK = b"jlr"

    def __init__(self, handler: Any) -> None:
        self._handler = handler
        self._sent: Deque[Tuple[int, str, List[Any], int]] = deque()
        self._bytes = 0
        self._number = 0
        self._asked = False
        self.over = False
        self._on_pong = handler.on_pong
        handler.on_pong = self._answered

    def add(self, stream: Any, message: List[Any]) -> None:
        """Keep a message that is about to be sent."""
        channel = stream if isinstance(stream, str) else stream.channel
        size = sum(map(len, message))
        self._number += 1
        self._bytes += size
        self._sent.append((self._number, channel, message, size))
        while self._bytes > self.MOST_BYTES:
            self._bytes -= self._sent.popleft()[3]

    def ask(self) -> None:
        """Ping the page, unless a ping is under way."""
        if self._sent and not self._asked and not self.over:
            try:
                self._handler.ping(self.MARK + str(self._number).encode())
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
        self.ask()

    def leave(self, kept: Any, channels: Any) -> None:
        """Put it before what Jupyter keeps for the page from now on."""
        if kept and kept["channels"] is channels:
            kept["buffer"][:0] = [(channel, message) for _, channel, message, _ in self._sent]
        self._sent.clear()


class ResumableConnection(_Connection):  # type: ignore[misc]
    """A kernel's WebSocket to a page of jupyter_server 2."""

    NOTES_BYTES = 1 << 20
    cells = ""  # the file of the notes, empty for none
    limit_rate: bool

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._unconfirmed = Unconfirmed(self.websocket_handler)

    def handle_incoming_message(self, incoming_msg: Any) -> None:
        """Note the cell of a request before the kernel has it."""
        if self.cells:
            with suppress(
                *(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
            ):
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

    def handle_outgoing_message(self, stream: Any, outgoing_msg: List[Any]) -> None:
        """Keep a message that is sent."""
        self._unconfirmed.add(stream, outgoing_msg)
        super().handle_outgoing_message(stream, outgoing_msg)
        self._unconfirmed.ask()

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
        """End; what the page may not have is kept for it."""
        if self._unconfirmed.over:  # replaced by the page's next connection, and closed only now
            return
        self._unconfirmed.over = True
        super().disconnect()
        kept = self.multi_kernel_manager._kernel_buffers.get(self.kernel_id)
        self._unconfirmed.leave(kept, self.channels)

    async def _register_session(self) -> None:
        """Take the place of the page's last connection, which may seem alive."""
        last = self._open_sessions.get(f"{self.kernel_id}:{self.session.session}")
        connection = getattr(last, "connection", None)
        if last is not None and connection is not None:
            connection.disconnect()
            last.close()
        await super()._register_session()


def resume(package: str) -> None:
    """Do the same in a server that is older than jupyter_server 2."""
    handlers = import_module(package + ".services.kernels.handlers")
    handler: Any = getattr(handlers, "ZMQChannelsHandler", None)
    if handler is None or hasattr(handler, "unconfirmed"):  # the configuration was read twice
        return
    handler.unconfirmed, handler.unlimited = None, False
    register, begin = handler._register_session, handler.open
    send, end = handler._on_zmq_reply, handler.on_close

    async def replace(self: Any) -> None:
        last = self._open_sessions.get(f"{self.kernel_id}:{self.session.session}")
        if last is not None:
            last.on_close()
            last.close()
        await register(self)

    def begin_with_kept(self: Any, *path: Any, **names: Any) -> Any:
        self.unconfirmed, self.unlimited = Unconfirmed(self), True
        begun = begin(self, *path, **names)

        def limit(_: Any = None) -> None:
            self.unlimited = False

        if begun is None:
            limit()
        else:
            begun.add_done_callback(limit)
        return begun

    def keep_and_send(self: Any, stream: Any, message: List[Any]) -> None:
        self.unconfirmed.add(stream, message)
        send(self, stream, message)
        self.unconfirmed.ask()

    def end_once(self: Any) -> None:
        unconfirmed = self.unconfirmed
        if unconfirmed is None:  # refused before it was open
            end(self)
        elif not unconfirmed.over:
            unconfirmed.over = True
            end(self)
            kept = self.kernel_manager._kernel_buffers.get(self.kernel_id)
            unconfirmed.leave(kept, self.channels)

    handler._register_session, handler.open = replace, begin_with_kept
    handler._on_zmq_reply, handler.on_close = keep_and_send, end_once
    for name in ("iopub_msg_rate_limit", "iopub_data_rate_limit"):
        setattr(handler, name, property(unless_unlimited(getattr(handler, name).fget)))


def unless_unlimited(limit: Any) -> Any:
    """Return a rate limit that is 0 while a page is sent what was kept."""
    return lambda handler: 0 if handler.unlimited else limit(handler)
