"""Send a page each message of its kernel once, over however many connections that takes.

Jupyter hands what it keeps for a page to its next connection, and writes what comes into that. With
the connection goes what was written and has not arrived, and all from then on if it ended while it
was handed the rest. Of several pages of a kernel it keeps what is for the last to go.

Here each page has a queue, which no connection takes over. A message leaves it once the page is
known to have it. A page of this server says with each connection how many messages it has received
(`pages`), and goes on there. For any other client its pongs count: what it has not confirmed is
sent again. A page that its person closed is left as Jupyter has it.

It is for each server since Notebook 6, on Python 3.6 and newer.
"""
# ruff: noqa: UP006, UP035, UP045 - Python 3.6 has no newer form of these

from collections import deque
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Deque, Dict, List, Optional

from tornado.gen import maybe_future
from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketClosedError

MOST_BYTES = 64 << 20  # of a page; then the oldest go
SPARE_BYTES = 4 << 20  # of what a browser has, and its page may not have yet
MOST_PAGES = 4  # of a kernel that are away
PAUSE_SECONDS = 0.2
MARK = b"jlr"


class Queued:
    """A message for a page, with the number of its frame once it was written."""

    def __init__(self, stream: Any, parts: List[Any]) -> None:
        self.stream, self.parts = stream, parts
        self.size, self.number = sum(map(len, parts)), 0


class Socket:
    """A connection of a page, which counts the messages that were written and that arrived."""

    def __init__(self, connection: Any, handler: Any, send: Any) -> None:
        self._connection, self._handler, self._send = connection, handler, send
        self._write, self._on_pong = handler.write_message, handler.on_pong
        handler.write_message, handler.on_pong = self._counted, self._answered
        told = handler.get_argument("received", "")
        # How many messages the page had received before; `None` if it does not tell.
        self.received = int(told) if told.isdecimal() and len(told) < 16 else None
        self.number = self.received or 0
        self._confirmed = self.number
        self._asked = False
        self.page: Optional[PageQueue] = None

    @property
    def closed(self) -> bool:
        to = self._handler.ws_connection
        return to is None or to.client_terminated or to.server_terminated or to.stream.closed()

    def send(self, message: Queued) -> bool:
        """Write a message; return `False` if the rate limit has left it out."""
        before = self.number
        try:
            self._send(self._connection, message.stream, message.parts)
        except WebSocketClosedError:
            pass
        except ValueError as failure:  # a kernel may publish what it likes
            self._handler.log.warning("no message of Jupyter's: %s", failure)
        message.number = self.number
        return self.number > before or self.closed

    def _counted(self, *message: Any, **how: Any) -> Any:
        written = self._write(*message, **how)
        self.number += 1
        return written

    def ask(self, again: bool = False) -> None:
        self._asked = self._asked and not again
        if self.number > self._confirmed and not self._asked and not self.closed:
            self._asked = True
            self._handler.ping(MARK + str(self.number).encode())

    def _answered(self, data: bytes) -> None:
        self._on_pong(data)
        if data.startswith(MARK) and self.page is not None:
            self._confirmed = int(data[len(MARK) :])
            self.page.confirm(self._confirmed)
            IOLoop.current().call_later(PAUSE_SECONDS, self.ask, True)


class PageQueue:
    """The messages for a page that the page is not known to have."""

    def __init__(self, channels: Dict[str, Any], ports: Any) -> None:
        self.channels, self.ports = channels, ports
        self.lost = self.again = False  # whether its connection was lost; whether it has come back
        self._waiting: Deque[Queued] = deque()
        self._sent: Deque[Queued] = deque()  # before those
        self._bytes = 0  # of both
        self._socket: Optional[Socket] = None
        self.listen()

    def listen(self) -> None:
        for stream in self.channels.values():
            stream.page = self
            stream.on_recv_stream(self.take)

    def take(self, stream: Any, parts: List[Any]) -> None:
        message = Queued(stream, parts)
        self._waiting.append(message)
        self._bytes += message.size
        self._send()
        while self._bytes > MOST_BYTES and len(self._sent) + len(self._waiting) > 1:
            self._forget(self._sent or self._waiting)

    def begin(self, socket: Socket) -> None:
        """Send over a new connection what the page does not have."""
        for message in list(self._waiting):
            if socket.received is None or not 0 < message.number <= socket.received:
                break
            self._forget(self._waiting)
        for message in self._waiting:
            message.number = 0
        self._socket, socket.page = socket, self
        self._send()

    def end(self, socket: Socket) -> None:
        """Keep for the next connection what the page may not have."""
        if self._socket is socket:
            self._socket = None
            self._waiting.extendleft(reversed(self._sent))
            self._sent.clear()

    def confirm(self, number: int) -> None:
        spare = 0 if self._socket is None or self._socket.received is None else SPARE_BYTES
        while self._sent and self._sent[0].number <= number and self._bytes > spare:
            self._forget(self._sent)

    def _send(self) -> None:
        socket = self._socket
        while socket is not None and self._waiting and not socket.closed:
            message = self._waiting.popleft()
            self._sent.append(message)
            if not socket.send(message):
                self._bytes -= self._sent.pop().size
        if socket is not None:
            socket.ask()

    def _forget(self, messages: Deque[Queued]) -> None:
        self._bytes -= messages.popleft().size

    def drop(self) -> None:
        """Close the channels of a page that does not come back."""
        for stream in self.channels.values():
            if not stream.closed():
                stream.on_recv(None)
                stream.close()


def heard(page: PageQueue, stream: Any) -> Any:
    """Return a channel where Jupyter waits for a first message, while the page gets all."""

    def hear(hears: Any) -> None:
        def take(own: Any, parts: List[Any]) -> None:
            page.take(own, parts)
            hears(parts)

        stream.on_recv_stream(take)

    def stop() -> None:
        if not stream.closed():
            stream.on_recv_stream(page.take)

    return SimpleNamespace(on_recv=hear, stop_on_recv=stop, closed=stream.closed)


class Pages:
    """The pages that are away, by kernel and session, in the place of Jupyter's buffers."""

    def __init__(self, manager: Any) -> None:
        self._start, self._stop = manager.start_buffering, manager.stop_buffering
        self._away: Dict[str, Dict[str, PageQueue]] = {}

    def keep(self, manager: Any, kernel: str, session: str, channels: Dict[str, Any]) -> None:
        """Keep the messages for a page that has lost its connection."""
        if not manager.buffer_offline_messages:
            self._start(manager, kernel, session, channels)
        elif channels:
            page: PageQueue = channels["iopub"].page
            page.listen()
            self._drop_closed(kernel)
            away = self._away.setdefault(kernel, {})
            away[session] = page
            while len(away) > MOST_PAGES:
                away.pop(next(iter(away))).drop()

    def take_up(self, manager: Any, kernel: str, session: str) -> Optional[Dict[str, Any]]:
        """Return the channels of a page that has come again, with nothing for Jupyter to send."""
        page = self._away.get(kernel, {}).pop(session, None)
        self._drop_closed(kernel)
        if page is None:
            return None
        if hasattr(manager, "ports_changed"):
            manager.ports_changed(kernel)  # it says so once, and to whichever page asks first
        if page.ports != manager.get_kernel(kernel).ports:
            page.drop()
            return None
        page.again = True
        return {"session_key": session, "channels": page.channels, "buffer": []}

    def end(self, manager: Any, kernel: str) -> None:
        for page in self._away.pop(kernel, {}).values():
            page.drop()
        self._stop(manager, kernel)

    def _drop_closed(self, kernel: str) -> None:
        """Drop the page that its person closed, now that another one goes or comes."""
        away = self._away.get(kernel, {})
        for session in [session for session, page in away.items() if not page.lost]:
            away.pop(session).drop()


def resume(package: str) -> None:
    """Send each message once in the server of a package, `jupyter_server` or `notebook`."""
    kernels = package + ".services.kernels."
    manager: Any = import_module(kernels + "kernelmanager").MappingKernelManager
    try:
        channels = import_module(kernels + "connection.channels")
    except ImportError:  # older than jupyter_server 2
        connection = import_module(kernels + "handlers").ZMQChannelsHandler
        connection.limit_rate = True  # as newer ones have it; see `pages.is_limited`
        replace_methods(connection, "open", "on_close", "_on_zmq_reply")
    else:
        connection = channels.ZMQChannelsWebsocketConnection
        replace_methods(connection, "connect", "disconnect", "handle_outgoing_message")
    pages = manager.pages = Pages(manager)
    manager.start_buffering = lambda self, *args: pages.keep(self, *args)
    manager.get_buffer = lambda self, *args: pages.take_up(self, *args)
    manager.stop_buffering = lambda self, *args: pages.end(self, *args)
    watch = manager.start_watching_activity

    def watch_restarts(self: Any, kernel: str) -> None:
        """Let a kernel that died be busy no more, also before the next one says that it starts."""
        watch(self, kernel)
        own = self.get_kernel(kernel)
        self.add_restart_callback(kernel, lambda: setattr(own, "execution_state", "starting"))

    manager.start_watching_activity = watch_restarts


def replace_methods(connection: Any, beginning: str, ending: str, sending: str) -> None:
    """Connect the methods of Jupyter's connections to the queues of pages."""
    begin, end, send = (getattr(connection, name) for name in (beginning, ending, sending))
    create, register = connection.create_stream, connection._register_session
    nudge: Any = getattr(connection, "nudge", None)
    connection.page_socket, connection.is_over = None, False

    async def replace(self: Any) -> None:
        """Replace the page's last connection, which may seem alive."""
        last = self._open_sessions.get(f"{self.kernel_id}:{self.session.session}")
        if last is not None:
            replaced = getattr(last, "connection", last)
            if replaced is not None:
                getattr(replaced, ending)()
            last.close()
        await register(self)

    def begin_page(self: Any, *path: Any, **names: Any) -> Any:
        if self.is_over:  # it was lost or replaced before it was open
            handler_of(self).close()
            return maybe_future(None)
        self.page_socket = Socket(self, handler_of(self), send)
        begun = begin(self, *path, **names)

        def go_on(_: Any = None) -> None:
            if self.channels and not self.is_over:
                # The rate of what has waited is no reason to leave any of it out.
                limited, self.limit_rate = self.limit_rate, False
                self.channels["iopub"].page.begin(self.page_socket)
                self.limit_rate = limited

        if begun is None:
            go_on()
        else:
            begun.add_done_callback(go_on)
        return begun

    def create_page(self: Any) -> None:
        create(self)
        PageQueue(self.channels, manager_of(self).get_kernel(self.kernel_id).ports)

    def nudge_unless_again(self: Any) -> Any:
        """Wait for a first message of the kernel, as Jupyter does, unless the page came back."""
        channels = self.channels
        page = channels["iopub"].page
        if page.again:
            return maybe_future(None)
        self.channels = dict(channels, iopub=heard(page, channels["iopub"]))
        try:
            return nudge(self)
        finally:
            self.channels = channels

    def take(self: Any, stream: Any, parts: List[Any]) -> None:
        stream = self.channels[stream] if isinstance(stream, str) else stream
        stream.page.take(stream, parts)

    def end_once(self: Any) -> None:
        """End; Jupyter keeps the channels if it counts no other connection."""
        if self.is_over:
            return
        self.is_over = True
        counts, kernel = manager_of(self)._kernel_connections, self.kernel_id
        # One that is not open was not counted.
        others = counts.get(kernel, 0) - (self.page_socket is not None)
        kept = False
        if self.channels and not any(stream.closed() for stream in self.channels.values()):
            page = self.channels["iopub"].page
            page.end(self.page_socket)
            page.lost = handler_of(self).close_code is None
            kept = page.lost or others == 0
        if kernel in counts:
            counts[kernel] = 1 if kept else 2
        try:
            end(self)
        finally:
            if kernel in counts:
                counts[kernel] = others

    connection._register_session, connection.create_stream = replace, create_page
    if nudge is not None:
        connection.nudge = nudge_unless_again
    for name, method in ((beginning, begin_page), (ending, end_once), (sending, take)):
        setattr(connection, name, method)


def manager_of(connection: Any) -> Any:
    """Return the manager of all kernels."""
    return getattr(connection, "multi_kernel_manager", connection.kernel_manager)


def handler_of(connection: Any) -> Any:
    """Return the handler of a connection's WebSocket."""
    return getattr(connection, "websocket_handler", connection)
