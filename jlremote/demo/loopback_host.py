"""An SSH server on 127.0.0.1 that lets one key in and runs commands as the current user."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import asyncssh

from jlremote.demo import own_files
from jlremote.demo.command_session import KILL_SECONDS, Account, CommandSession, current_account
from jlremote.laptop import paths

for _name in ("asyncssh", "asyncio"):
    logging.getLogger(_name).addHandler(logging.NullHandler())  # or they would print to stderr

END_SECONDS = 10.0
_MOST_COMMANDS = 1000  # each has a thread that waits for its end
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
# As in `authorized_keys`: forwards lead to this machine alone.
_FORWARDS = ",".join(f'permitopen="{name}:*"' for name in ("127.0.0.1", "localhost", "[::1]"))


class DemoServer(asyncssh.SSHServer):
    """One client's connection to the server; asyncssh itself checks the key and the forwards."""

    def __init__(self, account: Account, connections: set[asyncssh.SSHServerConnection]) -> None:
        self._account = account
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self._connection)

    def session_requested(self) -> CommandSession:
        return CommandSession(self._account)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> bool:
        return True

    def unix_connection_requested(self, dest_path: str) -> bool:
        return True


@contextmanager
def running_server(account: Account, host: asyncssh.SSHKey, user: asyncssh.SSHKey) -> Iterator[int]:
    """Run a server with a key of its own, and one that it lets in; give its TCP port."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(_MOST_COMMANDS))
    thread = threading.Thread(target=loop.run_forever, name="demo-server", daemon=True)
    thread.start()
    connections: set[asyncssh.SSHServerConnection] = set()
    allowed = asyncssh.import_authorized_keys(f"{_FORWARDS} {user.export_public_key().decode()}")

    async def serve() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=lambda: DemoServer(account, connections),
            server_host_keys=[host],
            authorized_client_keys=allowed,
            encoding=None,
            line_editor=False,
            agent_forwarding=False,
            gss_host=None,
        )

    async def end() -> None:
        acceptor.close()
        for connection in tuple(connections):
            connection.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:  # the commands that ran over the connections
            await asyncio.wait(others, timeout=2 * KILL_SECONDS)
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

    The folder of `config` belongs to the host alone: it is deleted before and afterwards. Its keys
    are new.

    Raises:
        JlrError: a folder cannot be made or written.
    """
    own_files.clear(config)
    shutil.rmtree(config.parent, ignore_errors=True)
    paths.private_directory(config.parent)
    try:
        files = own_files.make(config)
        account = current_account(files)
        with configured_server(name, config, account):
            yield files
    finally:
        own_files.clear(config)
        shutil.rmtree(config.parent, ignore_errors=True)


@contextmanager
def configured_server(name: str, config: Path, account: Account) -> Iterator[int]:
    """Run a server with new keys, and write what `ssh -F CONFIG NAME` needs beside `config`.

    Raises:
        JlrError: a file cannot be written.
    """
    host, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    folder = config.parent
    with running_server(account, host, user) as port:
        known = f"[127.0.0.1]:{port} ".encode() + host.export_public_key()
        paths.write_whole(folder / "known_hosts", known)
        paths.write_whole(folder / "id", user.export_private_key())
        text = _CONFIG.format(host=name, port=port, user=account.user, folder=folder)
        paths.write_whole(config, text)
        yield port
