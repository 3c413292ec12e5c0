"""An SSH server on 127.0.0.1 that lets one key in and runs commands as the current user."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import asyncssh

from jlremote.demo import local_engine, own_files
from jlremote.demo.command_session import KILL_SECONDS, Account, CommandSession, current_account
from jlremote.laptop import paths

for _name in ("asyncssh", "asyncio"):
    logging.getLogger(_name).addHandler(logging.NullHandler())  # or they would print to stderr

END_SECONDS = 10.0
_CONFIG = """\
Host {host}
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile "{folder}/id"
    IdentitiesOnly yes
    IdentityAgent none
    PreferredAuthentications publickey
    UserKnownHostsFile "{folder}/known_hosts"
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""


_new_key = partial(asyncssh.generate_private_key, "ssh-ed25519")


@dataclass(frozen=True)
class DemoKeys:
    """The host's key and the only user key that it accepts, new for each demo."""

    host: asyncssh.SSHKey = field(default_factory=_new_key)
    user: asyncssh.SSHKey = field(default_factory=_new_key)


class DemoServer(asyncssh.SSHServer):
    """One client's connection to the server, which lets one user in with one key."""

    def __init__(self, running: Running, keys: DemoKeys, account: Account) -> None:
        self._running = running
        self._key = keys.user.convert_to_public()
        self._account = account

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._running.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._running.connections.discard(self._connection)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == self._account.user and key == self._key

    def session_requested(self) -> CommandSession:
        return CommandSession(self._account, self._running.commands)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Any:
        """Forward to this machine and its containers, and nowhere else."""
        return self._forward(dest_host, dest_port)

    async def _forward(self, host: str, port: int) -> Any:
        if not _is_loopback(host) and host not in await asyncio.to_thread(local_engine.addresses):
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED,
                "the demo forwards to this machine and its containers only",
            )
        return await self._connection.forward_connection(host, port)

    def unix_connection_requested(self, dest_path: str) -> bool:
        return True


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass
class Running:
    """The connections of the server and the commands that run over them."""

    connections: set[asyncssh.SSHServerConnection] = field(default_factory=set)
    commands: set[asyncio.Task[None]] = field(default_factory=set)

    async def end(self) -> None:
        """End the connections and the processes that run over them."""
        for connection in tuple(self.connections):
            connection.abort()
        if self.commands:
            await asyncio.wait(tuple(self.commands), timeout=2 * KILL_SECONDS)


@contextmanager
def running_server(keys: DemoKeys, account: Account) -> Iterator[int]:
    """Run a server, and give its TCP port on 127.0.0.1."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="demo-server", daemon=True)
    thread.start()
    running = Running()

    async def serve() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=lambda: DemoServer(running, keys, account),
            server_host_keys=[keys.host],
            encoding=None,
            line_editor=False,
            agent_forwarding=False,
            gss_host=None,
        )

    async def end() -> None:
        acceptor.close()
        await running.end()
        await loop.shutdown_default_executor()

    try:
        acceptor = asyncio.run_coroutine_threadsafe(serve(), loop).result()
        try:
            yield int(acceptor.get_port())
        finally:
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(end(), loop).result(END_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def loopback_host(name: str, config: Path) -> Iterator[Path]:
    """Run a host `name`, write its ssh configuration, and give the folder where logins begin.

    The folder of `config` belongs to the host alone: it is deleted before and afterwards.

    Raises:
        JlrError: a folder cannot be made or written.
    """
    own_files.clear(config)
    shutil.rmtree(config.parent, ignore_errors=True)
    paths.private_directory(config.parent)
    try:
        files = own_files.make(config)
        keys, account = DemoKeys(), current_account(files)
        with running_server(keys, account) as port:
            write_configuration(config, keys, name, account.user, port)
            yield files
    finally:
        own_files.clear(config)
        shutil.rmtree(config.parent, ignore_errors=True)


def write_configuration(config: Path, keys: DemoKeys, host: str, user: str, port: int) -> None:
    """Write what a client needs for `ssh -F CONFIG HOST`; the keys go beside `config`.

    Raises:
        JlrError: a file cannot be written.
    """
    folder = config.parent
    known = f"[127.0.0.1]:{port} ".encode() + keys.host.export_public_key()
    paths.write_whole(folder / "known_hosts", known)
    paths.write_whole(folder / "id", keys.user.export_private_key())
    paths.write_whole(config, _CONFIG.format(host=host, port=port, user=user, folder=folder))
