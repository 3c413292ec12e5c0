"""The forwards of a client: TCP and unix sockets in the place, both ways, and its SSH agent."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import asyncssh

from jlremote.errors import JlrError
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.container_relay import Where
from jlremote.ssh.forward.place_streams import PlaceStreams

# How long a client waits for the link's connection, and for an answer of the place.
CONNECTION_SECONDS = 30.0
_ANSWER_SECONDS = 30.0

Connect = Callable[[float], Connection]
# Opens the client's channel for a connection, which the forwarder that it is given serves.
OpenChannel = Callable[[Callable[[], Any]], Awaitable[Any]]


class PlaceForwards:
    """The connections and listeners that clients of one place ask for, in the event loop."""

    def __init__(self, streams: PlaceStreams, connect: Connect) -> None:
        self._streams = streams
        self._connect = connect
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self, *to: str | int) -> asyncssh.SSHForwarder:
        """Connect to a host and port of the place, or to a path.

        Raise `ChannelOpenError` if it is refused there, or the host is not connected.
        """
        near, far = socket.socketpair()
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        try:
            connection = await asyncio.to_thread(self._connect, CONNECTION_SECONDS)
            self._streams.connect(connection, to, far, _in_loop(answer))
            refusal = await asyncio.wait_for(answer, _ANSWER_SECONDS)
        except (JlrError, TimeoutError) as error:
            near.close()
            raise _refused(str(error) or "no answer") from error
        if refusal is not None:
            near.close()
            raise _refused(refusal)
        return ChannelEnd(await _on_socket(near))

    async def listen(self, where: Where, open_channel: OpenChannel) -> PlaceSocket | None:
        """Listen in the place, and lead each connection to the client; `None` if it cannot."""
        here = asyncio.get_running_loop()
        answer: asyncio.Future[int | None] = here.create_future()

        def lead(near: socket.socket) -> None:
            task = here.create_task(_lead_to_client(near, open_channel))
            self._tasks.add(task)  # the loop itself keeps no task alive
            task.add_done_callback(self._tasks.discard)

        try:
            connection = await asyncio.to_thread(self._connect, CONNECTION_SECONDS)
        except JlrError:
            return None
        stop = self._streams.listen(connection, where, _in_loop(answer), partial(soon, here, lead))
        with suppress(TimeoutError):
            port = await asyncio.wait_for(answer, _ANSWER_SECONDS)
            if port is not None:
                return PlaceSocket(stop, port)
        stop()
        return None

    async def lend_agent(self, agent: str) -> tuple[PlaceSocket, str] | None:
        """Lead a socket in the place to the client's agent at `agent`; return it and its path."""
        loop = asyncio.get_running_loop()
        path = f"/tmp/jlr-ssh-{secrets.token_hex(8)}/agent"  # noqa: S108 - a new folder of its own
        lent = await self.listen(
            (path, True), lambda factory: loop.create_unix_connection(factory, agent)
        )
        return None if lent is None else (lent, path)


class PlaceSocket(asyncssh.SSHListener):
    """A listener in the place, as asyncssh closes it with the client's connection."""

    def __init__(self, stop: Callable[[], None], port: int) -> None:
        super().__init__()
        self._stop = stop
        self._port = port

    def get_port(self) -> int:
        return self._port

    def close(self) -> None:
        self._stop()


class SocketEnd(asyncssh.SSHForwarder):
    """The socket's end of a forward; it reads nothing before there is a channel to write to.

    asyncssh would drop what comes earlier, such as a server's greeting.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.pause_reading()


class ChannelEnd(asyncssh.SSHForwarder):
    """The channel's end of a forward."""

    def __init__(self, near: SocketEnd) -> None:
        super().__init__(near)
        self._near = near

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Later: the answer that opens the channel has not been sent yet.
        asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        with suppress(AssertionError, RuntimeError):  # it is closed already
            self._near.resume_reading()

    def eof_received(self) -> bool:
        """Close once both directions have ended; asyncssh and `ssh -W` wait for each other."""
        goes_on = super().eof_received()
        if not goes_on:
            asyncio.get_running_loop().call_soon(self.close)
        return goes_on


async def _on_socket(sock: socket.socket) -> SocketEnd:
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    _, near = await loop.create_connection(SocketEnd, sock=sock)
    return near


async def _lead_to_client(near: socket.socket, open_channel: OpenChannel) -> None:
    end = await _on_socket(near)
    try:
        await open_channel(lambda: ChannelEnd(end))
    except (asyncssh.Error, OSError):
        end.close()


def soon(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: Any) -> None:
    """Call in the loop's thread, unless the link ends."""
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(call, *arguments)


def _in_loop(answer: asyncio.Future[Any]) -> Callable[[Any], None]:
    def settle(value: Any) -> None:
        if not answer.done():
            answer.set_result(value)

    return partial(soon, answer.get_loop(), settle)


def _refused(reason: str) -> asyncssh.ChannelOpenError:
    return asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, reason)


for _name in ("asyncssh", "asyncio"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # a line for each channel, with its command


# asyncssh begins a client's next request so soon after it has answered one.
_NEXT_REQUEST_SECONDS = 0.01


class EditorConnection(asyncssh.SSHServer):
    """The server's side of one client; `session` makes the channel of a shell or command."""

    def __init__(self, session: Callable[[], Any], forwards: PlaceForwards) -> None:
        self._new_session = session
        self._forwards = forwards
        self._listening: set[asyncio.Future[PlaceSocket | None]] = set()
        self._lost = False

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True  # asyncssh closes the sockets

    def session_requested(self) -> Any:
        return self._session()

    async def _session(self) -> Any:
        """Begin a session once the sockets listen that were asked for before, as sshd does."""
        while self._listening:
            await asyncio.wait(self._listening)
            await asyncio.sleep(_NEXT_REQUEST_SECONDS)
        return self._new_session()

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Any:
        """Connect to a port that programs in the place reach."""
        return self._forwards.connect(dest_host, dest_port)

    def unix_connection_requested(self, dest_path: str) -> Any:
        """Connect to a unix socket of the place."""
        return self._forwards.connect(dest_path)

    def server_requested(self, listen_host: str, listen_port: int) -> Any:
        """Listen on the place's loopback, whatever address is asked for, as sshd does."""
        return self._listen(
            (listen_port,),
            lambda factory: self._connection.create_connection(factory, listen_host, listen_port),
        )

    def unix_server_requested(self, listen_path: str) -> Any:
        """Listen at a path of the place."""
        return self._listen(
            (listen_path,),
            lambda factory: self._connection.create_unix_connection(factory, listen_path),
        )

    async def _listen(self, where: Where, open_channel: OpenChannel) -> PlaceSocket | None:
        listening = asyncio.ensure_future(self._forwards.listen(where, open_channel))
        self._listening.add(listening)
        listening.add_done_callback(self._listening.discard)
        made = await asyncio.shield(listening)
        if made is not None and self._lost:
            made.close()
        return made
