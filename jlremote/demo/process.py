"""A process behind pipes or in a terminal, in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jlremote.demo.descriptors import Sink, Source

QUIET_SECONDS = 1.0
PATIENCE_SECONDS = 2.0

Output = Callable[[Literal["stdout", "stderr"], bytes], None]

# A session's first process that opens a terminal gets it as its own, so that Ctrl-C reaches it.
_IN_TERMINAL = ("/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1')


@dataclass(frozen=True)
class Program:
    """What is run: arguments, current folder and environment."""

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]


class Process:
    """One process, the leader of a process session of its own, as a login makes it.

    Args:
        program: what to run.
        output: is given what it writes, piece by piece.

    Attributes:
        sink: its input.
    """

    def __init__(self, program: Program, output: Output) -> None:
        self._program = program
        self._output = output
        self._sources: list[Source] = []
        self._paused = False
        self._terminal: int | None = None

    def start(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Start it behind pipes; `pause` and `resume` are called as it takes its input.

        Raises:
            OSError: it cannot be started.
        """
        pipe = subprocess.PIPE
        self._process = self._spawn(self._program.argv, pipe, pipe)
        files = (self._process.stdin, self._process.stdout, self._process.stderr)
        stdin, stdout, stderr = (os.dup(file.fileno()) for file in files if file is not None)
        for file in files:
            assert file is not None
            file.close()
        self.sink = Sink(stdin, pause, resume)
        self._sources.append(Source(stdout, lambda data: self._output("stdout", data)))
        self._sources.append(Source(stderr, lambda data: self._output("stderr", data)))

    def start_in_terminal(
        self, width: int, height: int, pause: Callable[[], None], resume: Callable[[], None]
    ) -> None:
        """Start it in a terminal of `width` by `height` characters; otherwise as `start`."""
        ours, theirs = os.openpty()
        self._terminal = ours
        try:
            self.resize(width, height)
            argv = (*_IN_TERMINAL, os.ttyname(theirs), *self._program.argv)
            # Inherited too: while nobody had it open, reading our end would find its end.
            self._process = self._spawn(argv, theirs, theirs)
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self.sink = Sink(os.dup(ours), pause, resume)
        self._sources.append(Source(os.dup(ours), lambda data: self._output("stdout", data)))

    def _spawn(self, argv: tuple[str, ...], stdin: int, output: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            argv,
            cwd=self._program.folder,
            env=self._program.environment,
            stdin=stdin,
            stdout=output,
            stderr=output,
            start_new_session=True,
            bufsize=0,
        )

    def resize(self, width: int, height: int) -> None:
        """Tell the terminal its size in characters."""
        if self._terminal is not None:
            size = struct.pack("HHHH", height or 24, width or 80, 0, 0)
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def pause(self) -> None:
        """Let its output wait."""
        self._paused = True
        for source in self._sources:
            source.pause()

    def resume(self) -> None:
        """Read its output on."""
        self._paused = False
        for source in self._sources:
            source.resume()

    def signal(self, number: int) -> None:
        """Signal the process group; until the process is waited for, its id is nobody else's."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def hang_up(self) -> None:
        """End it as a terminal that is closed does, and with more force a little later."""
        self._close()
        self.signal(signal.SIGHUP)
        self.signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self.signal, signal.SIGKILL)

    async def wait(self) -> int:
        """Return its exit status once its last output was passed on; negative for a signal."""
        try:
            await _end_of(self._process.pid)
            await self._last_output()
            return self._process.wait()
        finally:
            self._close()

    async def _last_output(self) -> None:
        """Wait until all output was read, or only a process that was left behind could write."""
        loop = asyncio.get_running_loop()
        while open_ones := [source for source in self._sources if not source.ended.done()]:
            await asyncio.wait([source.ended for source in open_ones], timeout=QUIET_SECONDS)
            moved = max(source.last_moved for source in open_ones)
            if not self._paused and loop.time() - moved >= QUIET_SECONDS:
                return

    def _close(self) -> None:
        for source in self._sources:
            source.close()
        self.sink.close()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None


async def _end_of(pid: int) -> None:
    """Wait until a child has ended, and leave its pid taken: it is waited for afterwards.

    In a thread of its own, because asyncio's own way to wait ends only when the pipes do, which a
    process that was left behind may hold open for ever.
    """
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def wait() -> None:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it who asked
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()
    await ended.wait()
