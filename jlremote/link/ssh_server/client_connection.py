"""One client's connection: its login, and what it may ask for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import asyncssh

from jlremote.link.ssh_server.command_channel import CommandChannel
from jlremote.link.ssh_server.place_forwards import OpenChannel, PlaceForwards, PlaceSocket
from jlremote.link.ssh_server.served_place import Connect
from jlremote.place.runtimes.place import Place
from jlremote.ssh.forward.container_relay import Where

for _name in ("asyncssh", "asyncio"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # a line for each channel, with its command


# asyncssh begins a client's next request so soon after it has answered one.
_NEXT_REQUEST_SECONDS = 0.01


class EditorConnection(asyncssh.SSHServer):
    """The server's side of one client; it lets the laptop's own key in, and nothing else."""

    def __init__(
        self,
        place: Place,
        connect: Connect,
        forwards: PlaceForwards,
        key: asyncssh.SSHKey,
    ) -> None:
        self._place = place
        self._connect = connect
        self._forwards = forwards
        self._key = key
        self._listening: set[asyncio.Future[PlaceSocket | None]] = set()
        self._sockets: list[PlaceSocket] = []
        self._lost = False

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        for one in self._sockets:
            one.close()

    def public_key_auth_supported(self) -> bool:
        """Accept keys, and nothing else."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Accept the one key, whatever user is named."""
        return key == self._key

    def session_requested(self) -> Any:
        return self._session()

    async def _session(self) -> CommandChannel:
        """Begin a session once the sockets listen that were asked for before, as sshd does."""
        while self._listening:
            await asyncio.wait(self._listening)
            await asyncio.sleep(_NEXT_REQUEST_SECONDS)
        return CommandChannel(self._place, self._connect, self._forwards)

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

        async def open_channel(factory: Callable[[], Any]) -> None:
            await self._connection.create_connection(factory, listen_host, listen_port)

        return self._listen((listen_port,), open_channel)

    def unix_server_requested(self, listen_path: str) -> Any:
        """Listen at a path of the place."""

        async def open_channel(factory: Callable[[], Any]) -> None:
            await self._connection.create_unix_connection(factory, listen_path)

        return self._listen((listen_path,), open_channel)

    async def _listen(self, where: Where, open_channel: OpenChannel) -> PlaceSocket | None:
        listening = asyncio.ensure_future(self._forwards.listen(where, open_channel))
        self._listening.add(listening)
        try:
            made = await asyncio.shield(listening)
        finally:
            self._listening.discard(listening)
        if made is not None:
            self._sockets.append(made)
            if self._lost:
                made.close()
        return made
