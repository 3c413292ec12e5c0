"""A session channel of the demo's server: one command or shell."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import asyncssh

from jlremote.demo.login import Login
from jlremote.demo.process import PATIENCE_SECONDS, Process, Program

_CANNOT_RUN = 127


class Session(asyncssh.SSHServerSession[bytes]):
    """One process, from its request to its exit status.

    As with sshd, the process's own end is what counts: what it leaves behind goes on. But when the
    other side closes the channel, the process group is ended with it.
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self._command: str | None = None
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        """Keep the channel."""
        self._channel = chan

    def pty_requested(self, term_type: str, term_size: Any, term_modes: Any) -> bool:
        """Take a terminal; the channel remembers it."""
        return True

    def shell_requested(self) -> bool:
        """Take a shell."""
        return True

    def exec_requested(self, command: str) -> bool:
        """Take a command."""
        self._command = command
        return True

    def session_started(self) -> None:
        """Start the process; input may come from now on."""
        process = Process(self._program(), self._output)
        flow = self._channel.pause_reading, self._channel.resume_reading
        try:
            if self._channel.get_terminal_type() is None:
                process.start(*flow)
            else:
                width, height, *_ = self._channel.get_terminal_size()
                process.start_in_terminal(width, height, *flow)
        except OSError as error:
            self._output("stderr", f"{self._login.shell}: {error.strerror}\n".encode())
            self._channel.exit(_CANNOT_RUN)
            return
        self._process = process
        self._task = asyncio.ensure_future(self._see_through(process))

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Pass input on."""
        if self._process is not None:
            self._process.sink.write(data)

    def eof_received(self) -> bool:
        """End the input; the output goes on."""
        if self._process is not None:
            self._process.sink.end()
        return True

    def pause_writing(self) -> None:
        """Let the process wait until the other side has read."""
        if self._process is not None:
            self._process.pause()

    def resume_writing(self) -> None:
        """Read the process's output on."""
        if self._process is not None:
            self._process.resume()

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        """Resize the terminal."""
        if self._process is not None:
            self._process.resize(width, height)

    def signal_received(self, signal: str) -> None:
        """Pass a signal on to the process group."""
        if self._process is not None:
            self._process.signal(_number(signal))

    def connection_lost(self, exc: Exception | None) -> None:
        """End what still runs: nobody is there any more."""
        self._closed = True
        if self._process is not None and self._runs():
            self._process.hang_up()

    @property
    def over(self) -> bool:
        """Whether the channel is closed, and nothing that it began runs any more."""
        return self._closed and not self._runs()

    async def ended(self) -> None:
        """Wait for the process's end, which comes soon once the channel is closed."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=2 * PATIENCE_SECONDS)

    def _runs(self) -> bool:
        return self._task is not None and not self._task.done()

    def _program(self) -> Program:
        shell = self._login.shell
        argv = (shell, "-l") if self._command is None else (shell, "-c", self._command)
        return Program(argv, self._login.folder, self._environment())

    def _environment(self) -> dict[str, str]:
        """Add what the client asks for, as far as sshd takes it on Debian: the language."""
        asked = self._channel.get_environment()
        language = {k: v for k, v in asked.items() if k == "LANG" or k.startswith("LC_")}
        terminal = self._channel.get_terminal_type()
        return {**self._login.environment, **language, **({"TERM": terminal} if terminal else {})}

    def _output(self, stream: str, data: bytes) -> None:
        self._channel.write(data, asyncssh.EXTENDED_DATA_STDERR if stream == "stderr" else None)

    async def _see_through(self, process: Process) -> None:
        status = await process.wait()
        if status < 0:
            self._channel.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            self._channel.exit(status)


def _number(name: str) -> int:
    """Return the number of a signal by its SSH name, 0 (which does nothing) for an unknown one."""
    return int(getattr(signal, f"SIG{name}", 0))
