"""One command or shell of the demo's SSH server, as a process of this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import asyncssh

from jlremote.demo.account import Account

END_OF_INPUT = b"\x04"  # Ctrl-D, which a terminal takes for an end of file
CANNOT_RUN = 127
QUIET_SECONDS = 1.0
KILL_SECONDS = 2.0

# The first process of a session that opens a terminal controls it, so that Ctrl-C reaches it.
_IN_TERMINAL = ("/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1')


class CommandSession(asyncssh.SSHServerProcess[bytes]):
    """A session channel of the server, from its request to the exit status of its process.

    As with sshd, the channel ends with its own process, and what that leaves behind goes on. But
    when the client closes the channel, the whole process group is ended.
    """

    def __init__(self, account: Account) -> None:
        super().__init__(lambda _: self._begin(), None, 0, False)
        self._account = account
        self._child: subprocess.Popen[bytes] | None = None
        self._terminal: int | None = None
        self._task: asyncio.Task[None] | None = None
        self._pieces = 0
        self._closed = False

    def subsystem_requested(self, subsystem: str) -> bool:
        """Refuse subsystems: the demo has no SFTP."""
        return False

    def _begin(self) -> None:
        shell = self._account.shell
        argv = (shell, "-l") if self.command is None else (shell, "-c", self.command)
        try:
            self._child = self._spawn(argv)
        except OSError as error:
            self.stderr.write(f"{shell}: {error.strerror}\n".encode())
            self.exit(CANNOT_RUN)
        else:
            self._task = asyncio.ensure_future(self._run(self._child))

    def _spawn(self, argv: tuple[str, ...]) -> subprocess.Popen[bytes]:
        if self.term_type is None:
            return self._popen(argv, subprocess.PIPE)
        if sys.platform == "win32":
            raise NotImplementedError
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
        return subprocess.Popen(
            argv,
            cwd=self._account.folder,
            env=self._environment(),
            stdin=streams,
            stdout=streams,
            stderr=streams,
            start_new_session=True,
            bufsize=0,
        )

    def _environment(self) -> dict[str, str]:
        """Add the client's language and terminal, as sshd on Debian does."""
        language = {k: v for k, v in self.env.items() if k == "LANG" or k.startswith("LC_")}
        terminal = {"TERM": self.term_type} if self.term_type else {}
        return {**self._account.environment, **language, **terminal}

    async def _run(self, child: subprocess.Popen[bytes]) -> None:
        if self._terminal is None:
            streams = (child.stdin, child.stdout, child.stderr)
            await self.redirect(*streams, send_eof=False)
        else:
            output = os.dup(self._terminal)
            await self.redirect(self._terminal, output, send_eof=False, recv_eof=False)
            self._resize()  # asyncssh has set the size that the client gave, which may be 0
        await _end_of(child)
        await self._last_output()
        status = child.wait()
        self._close_terminal()
        if status < 0:
            self.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            self.exit(status)
        await self.wait_closed()  # lets asyncssh close the pipes

    async def _last_output(self) -> None:
        """Wait until all output was read, or only a process that was left behind could write."""
        drained = asyncio.gather(self.stdout.drain(), self.stderr.drain(), return_exceptions=True)
        moved = True
        while not drained.done() and (moved or self.channel.get_write_buffer_size()):
            before = self._pieces
            await asyncio.wait([drained], timeout=QUIET_SECONDS)
            moved = self._pieces != before
        drained.cancel()

    def feed_data(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Send a piece of output, and count it."""
        self._pieces += 1
        super().feed_data(data, datatype)

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
        if sys.platform == "win32":
            raise NotImplementedError
        if self._terminal is not None:
            import termios

            width, height, *_ = self.term_size
            termios.tcsetwinsize(self._terminal, (height or 24, width or 80))

    def signal_received(self, signal: str) -> None:
        self._kill(signal)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the process group as a closed terminal does, and kill what is left a little later."""
        super().connection_lost(exc)
        self._closed = True
        if self._runs():
            self._close_terminal()
            self._kill("HUP")
            self._kill("TERM")
            asyncio.get_running_loop().call_later(KILL_SECONDS, self._kill, "KILL")

    @property
    def over(self) -> bool:
        """Whether the channel is closed and its process has ended."""
        return self._closed and not self._runs()

    async def ended(self) -> None:
        """Wait for the end of the process, which comes soon once the channel is closed."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=2 * KILL_SECONDS)

    def _runs(self) -> bool:
        return self._task is not None and not self._task.done()

    def _kill(self, name: str) -> None:
        """Signal the process group; its id is free for others only once it was waited for."""
        if sys.platform == "win32":
            raise NotImplementedError
        if self._child is not None and self._child.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, int(getattr(signal, f"SIG{name}", 0)))

    def _close_terminal(self) -> None:
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None


async def _end_of(process: subprocess.Popen[bytes]) -> None:
    """Wait until a child has ended; on Linux its pid stays taken until it is waited for.

    In a thread of its own, because asyncio's way to wait ends only when the pipes do, which a
    process that was left behind may hold open for ever.
    """
    if sys.platform == "win32":
        raise NotImplementedError
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def wait() -> None:
        if sys.platform == "linux":
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS has no `waitid` before Python 3.13
            process.wait()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()
    await ended.wait()
