"""One command or shell of the demo's SSH server, as a process of this machine."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncssh

SHELL = "/bin/sh"

# Variables of the laptop's side, or of a Jupyter terminal in which the demo was started.
_NOT_OF_THE_HOST = ("JLR_", "SSH_", "JUPYTER_", "JPY_")
# Where Jupyter, its kernels and the npm that it asks keep their files, else in the home folder.
_KEPT = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "npm_config_cache")

END_OF_INPUT = b"\x04"  # Ctrl-D, which a terminal takes for an end of file
CANNOT_RUN = 127
QUIET_SECONDS = 1.0
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
    user, shell = _user_and_shell()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_NOT_OF_THE_HOST)
    }
    kept = {name: str(folder / ".jupyter" / name.lower()) for name in _KEPT}
    # A host has a Python, which jobs need; this machine may have only the one that runs jlr.
    programs = (environment.get("PATH"), str(Path(sys.executable).parent))
    kept["PATH"] = os.pathsep.join(filter(None, programs))
    return Account(user, shell, folder, environment | kept)


def _user_and_shell() -> tuple[str, str]:
    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError:
        return f"user{os.getuid()}", SHELL
    shell = account.pw_shell
    usable = os.access(shell, os.X_OK) and Path(shell).name not in ("nologin", "false")
    return account.pw_name, shell if usable else SHELL


class CommandSession(asyncssh.SSHServerProcess[bytes]):
    """A session channel of the server, from its request to the exit status of its process.

    As with sshd, the channel ends with its own process, and what that leaves behind goes on. When
    the client closes the channel, the whole process group is ended. `running` has the tasks of all
    sessions whose process runs.
    """

    def __init__(self, account: Account, running: set[asyncio.Task[None]]) -> None:
        super().__init__(lambda _: self._begin(), None, 0, False)
        self._account = account
        self._running = running
        self._child: subprocess.Popen[bytes] | None = None
        self._terminal: int | None = None

    def subsystem_requested(self, subsystem: str) -> bool:
        return False  # the demo has no SFTP

    def _begin(self) -> None:
        shell = self._account.shell
        argv = (shell, "-l") if self.command is None else (shell, "-c", self.command)
        try:
            self._child = self._spawn(argv)
        except OSError as error:
            self.stderr.write(f"{shell}: {error.strerror}\n".encode())
            self.exit(CANNOT_RUN)
            return
        task = asyncio.get_running_loop().create_task(self._run(self._child))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _spawn(self, argv: tuple[str, ...]) -> subprocess.Popen[bytes]:
        if self.term_type is None:
            return self._popen(argv, subprocess.PIPE)
        self._terminal, theirs = os.openpty()
        try:
            self._resize()
            # Inherited as well: while no process has it open, reading our end would find its end.
            return self._popen((*_IN_TERMINAL, os.ttyname(theirs), *argv), theirs)
        except OSError:
            self._close_terminal()
            raise
        finally:
            os.close(theirs)

    def _popen(self, argv: tuple[str, ...], streams: int) -> subprocess.Popen[bytes]:
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

    async def _run(self, child: subprocess.Popen[bytes]) -> None:
        if self._terminal is None:
            await self.redirect(child.stdin, child.stdout, child.stderr, send_eof=False)
        else:
            output = os.dup(self._terminal)
            await self.redirect(self._terminal, output, send_eof=False, recv_eof=False)
            self._resize()  # asyncssh has set the size that the client gave, which may be 0
        status = await _status_of(child)
        await self._last_output()
        self._close_terminal()
        if status < 0:
            self.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            self.exit(status)
        await self.wait_closed()  # lets asyncssh close the pipes

    async def _last_output(self) -> None:
        """Wait until the client has all output that the ended process wrote."""
        drained = asyncio.gather(self.stdout.drain(), self.stderr.drain(), return_exceptions=True)
        unsent = 1
        while not drained.done() and unsent:
            await asyncio.wait([drained], timeout=QUIET_SECONDS)
            unsent = self.channel.get_write_buffer_size()
        drained.cancel()

    def resume_feeding(self, datatype: asyncssh.DataType) -> None:
        """Take input again, but not at once: asyncio's pipe would lose what came with its end.

        Its `_write_ready` closes after it has called us, though we may have filled its buffer.
        """
        asyncio.get_running_loop().call_soon(super().resume_feeding, datatype)

    def eof_received(self) -> bool:
        if self._terminal is not None:
            self.data_received(END_OF_INPUT, None)
        return super().eof_received()

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        self._resize()

    def _resize(self) -> None:
        if self._terminal is not None:
            width, height, *_ = self.term_size
            termios.tcsetwinsize(self._terminal, (height or 24, width or 80))

    def signal_received(self, signal: str) -> None:
        self._kill(signal)

    def connection_lost(self, exc: Exception | None) -> None:
        """Hang up on the process group, and kill the rest a little later."""
        super().connection_lost(exc)
        if self._child is not None and self._child.returncode is None:
            self._close_terminal()
            self._kill("HUP")
            self._kill("TERM")
            asyncio.get_running_loop().call_later(KILL_SECONDS, self._kill, "KILL")

    def _kill(self, name: str) -> None:
        """Signal the process group, unless its id may belong to others by now."""
        if self._child is not None and self._child.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, int(getattr(signal, f"SIG{name}", 0)))

    def _close_terminal(self) -> None:
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None


async def _status_of(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child in a thread: asyncio would wait for its pipes, too."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def wait() -> None:
        process.wait()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()
    await ended.wait()
    return process.wait()
