"""A terminal that a test types on."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE


class Terminal:
    """A process with a terminal of its own, 80 by 24; what it shows is kept in `screen`."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        laptop: Laptop | None = None,
        **streams: Any,
    ) -> None:
        """Start a program, or have a laptop run `jlr` with the words `argv`."""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        for name in ("stdin", "stdout", "stderr"):
            streams.setdefault(name, theirs)
        if laptop:
            streams["env"] = laptop.environment | {"TERM": "xterm-256color", **(environment or {})}
            self.process: subprocess.Popen[str] = laptop.popen(*argv, text=True, **streams)
        else:
            self.process = subprocess.Popen(
                argv,
                env=environment,
                preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
                start_new_session=True,
                pass_fds=[theirs],
                text=True,
                **streams,
            )
        os.close(theirs)
        self.screen = ""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, rows: int, columns: int) -> None:
        """Give it another size, as a person does who drags the window's corner."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def wait_for(self, text: str, *, seconds: float = PATIENCE) -> None:
        """Read until `text` has been shown since the last call of `forget`."""
        deadline = time.monotonic() + seconds
        while text not in self.screen:
            assert time.monotonic() < deadline, f"no {text!r} in {self.screen!r}"
            if select.select([self._ours], [], [], 0.1)[0]:
                self.screen += os.read(self._ours, 65536).decode(errors="replace")

    def forget(self) -> None:
        self.screen = ""

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self._ours)[3] & termios.ECHO)

    def result(self) -> tuple[str, str]:
        """Return what the process wrote to pipes, once it has ended; read the screen to its end."""
        os.set_blocking(self._ours, True)
        with contextlib.suppress(OSError):  # EIO is how a terminal says that nobody is there
            while more := os.read(self._ours, 65536):
                self.screen += more.decode(errors="replace")
        return self.process.communicate(timeout=PATIENCE)

    def close(self) -> None:
        os.close(self._ours)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def printed(script: str, *argv: str, **environment: str) -> str:
    """Return what a terminal gets of a Python script, which must end well."""
    words, variables = (sys.executable, "-c", script, *argv), os.environ | environment
    terminal = Terminal(words, environment=variables)
    terminal.result()
    terminal.close()
    assert terminal.process.returncode == 0, terminal.screen
    return terminal.screen.replace("\r\n", "\n")
