"""An SSH server on 127.0.0.1 that lets one key in and runs commands as the current user."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from jlremote.laptop import paths

# Variables of the laptop's side, or of a Jupyter terminal in which the demo was started.
_NOT_OF_THE_HOST = ("JLR_", "SSH_", "JUPYTER_", "JPY_")
# Where Jupyter, its kernels and the npm that it asks keep their files, else in the home folder.
_KEPT = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "npm_config_cache")
_CANNOT_RUN = 127
_QUIET_SECONDS = 1.0
KILL_SECONDS = 2.0

# The first process of a session that opens a terminal controls it, so that Ctrl-C reaches it.
_IN_TERMINAL = ("/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1')


@dataclass(frozen=True)
class Account:
    """The account of the demo's host: user, login shell, current folder, environment."""

    user: str
    shell: str
    folder: Path
    environment: Mapping[str, str]


def current_account(folder: Path) -> Account:
    """Return the account of the user who runs this process, with what Jupyter keeps in `folder`."""
    try:
        account = pwd.getpwuid(os.getuid())
        user, shell = account.pw_name, account.pw_shell
    except KeyError:
        user, shell = f"user{os.getuid()}", ""
    if not os.access(shell, os.X_OK) or Path(shell).name in ("nologin", "false"):
        shell = "/bin/sh"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_NOT_OF_THE_HOST)
    }
    kept = {name: str(folder / ".jupyter" / name.lower()) for name in _KEPT}
    # A host has a Python, which jobs need; this machine may have only the one that runs jlr.
    programs = (environment.get("PATH"), str(Path(sys.executable).parent))
    kept["PATH"] = os.pathsep.join(filter(None, programs))
    return Account(user, shell, folder, environment | kept)


class CommandSession(asyncssh.SSHServerProcess[bytes]):
    """A session channel of the server, which asyncssh joins with the streams of its process.

    As with sshd, the channel ends with its own process, and what that leaves behind goes on. When
    the client closes the channel, the whole process group is ended.
    """

    def __init__(self, account: Account) -> None:
        super().__init__(lambda _: self._run(), None, 0, False)
        self._account = account

    def subsystem_requested(self, subsystem: str) -> bool:
        return False  # the demo has no SFTP

    def resume_feeding(self, datatype: asyncssh.DataType) -> None:
        """Take input again, but not at once: asyncio's pipe would lose what came with its end.

        Its `_write_ready` closes after it has called us, though we may have filled its buffer.
        """
        asyncio.get_running_loop().call_soon(super().resume_feeding, datatype)

    async def _run(self) -> None:
        shell = self._account.shell
        argv = (shell, "-l") if self.command is None else (shell, "-c", self.command)
        try:
            child = await (self._piped(argv) if self.term_type is None else self._in_terminal(argv))
        except OSError as error:
            self.stderr.write(f"{shell}: {error.strerror}\n".encode())
            self.exit(_CANNOT_RUN)
            return
        ended = asyncio.ensure_future(asyncio.to_thread(child.wait))
        closed = asyncio.ensure_future(self.channel.wait_closed())
        await asyncio.wait((ended, closed), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await _end(child, ended)
            return
        await self._last_output()
        if (status := await ended) < 0:
            self.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            self.exit(status)
        await self.wait_closed()  # lets asyncssh close the pipes

    async def _piped(self, argv: tuple[str, ...]) -> subprocess.Popen[bytes]:
        child = self._begun(argv, subprocess.PIPE)
        await self.redirect(child.stdin, child.stdout, child.stderr, send_eof=False)
        return child

    async def _in_terminal(self, argv: tuple[str, ...]) -> subprocess.Popen[bytes]:
        ours, theirs = os.openpty()
        # asyncssh closes our end, and gives it the client's size.
        await self.redirect(ours, os.dup(ours), send_eof=False, recv_eof=False)
        try:
            # Inherited as well: while no process has it open, reading our end would find its end.
            return self._begun((*_IN_TERMINAL, os.ttyname(theirs), *argv), theirs)
        finally:
            os.close(theirs)

    def _begun(self, argv: tuple[str, ...], streams: int) -> subprocess.Popen[bytes]:
        # The client's language and terminal, as sshd on Debian takes them.
        language = {k: v for k, v in self.env.items() if k == "LANG" or k.startswith("LC_")}
        terminal = {"TERM": self.term_type} if self.term_type else {}
        return subprocess.Popen(
            argv,
            cwd=self._account.folder,
            env={**self._account.environment, **language, **terminal},
            stdin=streams,
            stdout=streams,
            stderr=streams,
            start_new_session=True,
            bufsize=0,
        )

    async def _last_output(self) -> None:
        """Wait until the client has all output that the ended process wrote."""
        drained = asyncio.gather(self.stdout.drain(), self.stderr.drain(), return_exceptions=True)
        unsent = 1
        while not drained.done() and unsent:
            await asyncio.wait([drained], timeout=_QUIET_SECONDS)
            unsent = self.channel.get_write_buffer_size()
        drained.cancel()


async def _end(child: subprocess.Popen[bytes], ended: asyncio.Future[int]) -> None:
    """Hang up on a process group, and kill the rest a little later."""
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
        if child.returncode is None:  # else its id may belong to others by now
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, number)
        if number == signal.SIGTERM:
            await asyncio.wait([ended], timeout=KILL_SECONDS)


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
def configured_server(name: str, config: Path, account: Account) -> Iterator[int]:
    """Run a server with new keys, and write what `ssh -F CONFIG NAME` needs beside `config`.

    Raise `JlrError` if a file cannot be written.
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
