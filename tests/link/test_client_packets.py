"""`ClientPackets` between asyncssh's server and clients, with a socket in between.

It uses private names of asyncssh. Where a release renames one, these tests fail.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import Callable
from typing import Any

import asyncssh
import pytest

from jlremote.link.ssh_server.client_packets import ClientPackets

SIZE = 6_000_001
GCM, CHACHA = "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"


class Server(asyncssh.SSHServer):
    """Lets everyone in, and echoes what comes to stdout and in parts to stderr."""

    def __init__(self) -> None:
        self.packets: ClientPackets | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn

    def auth_completed(self) -> None:
        self.packets = ClientPackets(self.connection)

    def begin_auth(self, username: str) -> bool:
        return False

    def session_requested(self) -> Echo:
        return Echo()


class Echo(asyncssh.SSHServerSession[bytes]):
    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def exec_requested(self, command: str) -> bool:
        return True

    def data_received(self, data: bytes, datatype: Any) -> None:
        self._channel.write(data)
        self._channel.write(data[:100], asyncssh.EXTENDED_DATA_STDERR)

    def eof_received(self) -> bool:
        self._channel.write_eof()
        self._channel.exit(3)
        return True


async def serve(server: Server, sock: socket.socket, **options: Any) -> Any:
    key = asyncssh.generate_private_key("ssh-ed25519")
    return await asyncssh.run_server(
        sock,
        server_factory=lambda: server,
        server_host_keys=[key],
        encoding=None,
        compression_algs=None,
        **options,
    )


async def connect(sock: socket.socket, **options: Any) -> asyncssh.SSHClientConnection:
    return await asyncssh.connect(
        sock=sock, host="server", known_hosts=None, username="me", config=None, **options
    )


@pytest.mark.parametrize("cipher", [GCM, CHACHA])
def test_bytes_pass_unchanged_while_either_side_renews_the_keys(cipher: str) -> None:
    data = os.urandom(SIZE)

    async def talk() -> None:
        ours, theirs = socket.socketpair()
        server = Server()
        serving = asyncio.ensure_future(serve(server, ours, rekey_bytes=1_500_000))
        async with await connect(theirs, encryption_algs=[cipher], rekey_bytes=900_000) as client:
            await serving
            for _ in range(2):
                done = await client.run("echo", input=data, encoding=None)
                assert isinstance(done.stdout, bytes)
                assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
                assert len(done.stderr or b"") > 100
                assert done.exit_status == 3

    asyncio.run(talk())


def test_a_packet_that_was_changed_on_the_way_ends_the_connection() -> None:
    async def talk() -> None:
        ours, theirs = socket.socketpair()
        server = Server()
        serving = asyncio.ensure_future(serve(server, ours))
        client = await connect(theirs, encryption_algs=[GCM])
        await serving
        assert server.packets is not None
        receive: Callable[..., None] = server.packets.received

        def changed(data: bytes, datatype: Any = None) -> None:
            receive(data[:-1] + bytes((data[-1] ^ 1,)), datatype)

        server.connection.data_received = changed  # type: ignore[method-assign]
        with pytest.raises((asyncssh.Error, OSError)):
            await client.run("echo", input="lost")
        await client.wait_closed()

    asyncio.run(talk())


def test_with_aes_gcm_no_data_takes_the_way_of_asyncssh(monkeypatch: pytest.MonkeyPatch) -> None:
    slow: list[int] = []
    send = asyncssh.SSHServerConnection.send_packet

    def noted(connection: Any, kind: int, *rest: Any, **options: Any) -> None:
        slow.append(kind)
        send(connection, kind, *rest, **options)

    monkeypatch.setattr(asyncssh.SSHServerConnection, "send_packet", noted)
    handlers = asyncssh.SSHServerChannel._packet_handlers
    read = handlers[94]

    def read_noted(channel: Any, *rest: Any) -> Any:
        if isinstance(channel, asyncssh.SSHServerChannel):
            slow.append(94)
        return read(channel, *rest)

    monkeypatch.setitem(handlers, 94, read_noted)

    async def talk() -> None:
        ours, theirs = socket.socketpair()
        serving = asyncio.ensure_future(serve(Server(), ours))
        async with await connect(theirs, encryption_algs=[GCM]) as client:
            await serving
            await client.run("echo", input=os.urandom(SIZE), encoding=None)

    asyncio.run(talk())
    assert 94 not in slow
    assert 95 not in slow
    assert {2, 93} <= set(slow)
