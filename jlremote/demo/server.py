"""An SSH server on 127.0.0.1 that lets one key in and runs commands as the current user."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import asyncssh

from jlremote.demo.keys import Keys
from jlremote.demo.login import Login
from jlremote.demo.session import Session

logging.getLogger("asyncssh").addHandler(logging.NullHandler())  # or it would print to stderr

END_SECONDS = 10.0


class Server:
    """The server in an event loop of its own.

    Args:
        keys: who it is, and whom it lets in.
        login: what they find.
        addresses: returns where forwards may lead besides the loopback; may take its time.
    """

    def __init__(self, keys: Keys, login: Login, addresses: Callable[[], Collection[str]]) -> None:
        self.keys = keys
        self.login = login
        self.addresses = addresses
        self.sessions: list[Session] = []
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self._acceptor: asyncssh.SSHAcceptor | None = None

    async def start(self) -> int:
        """Listen, and return the TCP port."""
        self._acceptor = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=lambda: Visitor(self),
            server_host_keys=[self.keys.host],
            encoding=None,
            line_editor=False,
            agent_forwarding=False,
            gss_host=None,
        )
        return int(self._acceptor.get_port())

    async def stop(self) -> None:
        """End the connections, and what runs over them."""
        if self._acceptor is not None:
            self._acceptor.close()
        for connection in tuple(self.connections):
            connection.abort()
        await asyncio.gather(*(session.ended() for session in self.sessions))
        await asyncio.get_running_loop().shutdown_default_executor()

    def new_session(self) -> Session:
        """Return a session that is ended with the server."""
        self.sessions = [session for session in self.sessions if not session.over]
        self.sessions.append(session := Session(self.login))
        return session


class Visitor(asyncssh.SSHServer):
    """One connection to the server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Keep the connection, to end it with the server."""
        self._connection = conn
        self._server.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._server.connections.discard(self._connection)

    def public_key_auth_supported(self) -> bool:
        """Take keys, and nothing else."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Let the one user with the one key in."""
        known = self._server.keys.person.convert_to_public()
        return username == self._server.login.user and key == known

    def session_requested(self) -> Session:
        """Give a channel for a command or a shell."""
        return self._server.new_session()

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Any:
        """Forward to this machine and its containers, and nowhere else."""
        return self._forward(dest_host, dest_port)

    async def _forward(self, host: str, port: int) -> Any:
        if not _is_loopback(host):
            allowed = await asyncio.to_thread(self._server.addresses)
            if host not in allowed:
                raise asyncssh.ChannelOpenError(
                    asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED,
                    "the demo forwards to this machine and its containers only",
                )
        return await self._connection.forward_connection(host, port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def running_server(
    keys: Keys, login: Login, addresses: Callable[[], Collection[str]] = tuple
) -> Iterator[int]:
    """Run a server for the time of a `with` block, and give its TCP port on 127.0.0.1.

    Args:
        keys: who it is, and whom it lets in.
        login: what they find.
        addresses: returns where forwards may lead besides the loopback, asked at each.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="demo-server", daemon=True)
    thread.start()
    server = Server(keys, login, addresses)
    try:
        yield asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    finally:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result(END_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
