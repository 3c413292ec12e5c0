"""A running ProxyCommand, whose stdin and stdout are one end of a socket pair.

A real socket instead of paramiko's `ProxyCommand`: the command's death closes its end, so the
connection ends at once, where paramiko's wrapper spins.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from jlremote.errors import Unreachable
from jlremote.text import one_line

_END_SECONDS = 2.0
_KEPT = 4096  # bytes of the command's last output


class ProxyProcess:
    """The process of a proxy command, in `folder` or ours; its `socket` is our end."""

    def __init__(self, command: str, folder: Path | None = None) -> None:
        ours, theirs = socket.socketpair()
        shell = os.environ.get("SHELL") or "/bin/sh"
        try:
            self._process = subprocess.Popen(
                (shell, "-c", f"exec {command}"),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                cwd=folder,
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self.socket = ours
        self._last_output = b""
        # Read all the time: a command that prints much, such as `ssh -v`, would block.
        self._reader = threading.Thread(target=self._read, name="jlr proxy", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while output := os.read(stream.fileno(), _KEPT):
                self._last_output = (self._last_output + output)[-_KEPT:]

    def receive_descriptor(self, seconds: float) -> socket.socket:
        """Return the connected socket that the command hands over (ProxyUseFdpass).

        Raises:
            Unreachable: it handed over none.
            TimeoutError: it sent nothing within `seconds`.
        """
        if sys.platform == "win32":
            raise NotImplementedError  # `connect` has refused
        self.socket.settimeout(seconds)
        _, descriptors, _, _ = socket.recv_fds(self.socket, 1, 1)
        if not descriptors:
            raise Unreachable(
                "the proxy command handed over no connection",
                hint="remove `ProxyUseFdpass`, or pass a descriptor as `nc -F` does",
            )
        return socket.socket(fileno=descriptors[0])

    def complaint(self) -> str:
        """Return the last lines that a dead command printed."""
        self._reader.join(_END_SECONDS)
        lines = self._last_output.decode("utf-8", "replace").strip().splitlines()
        return one_line(" / ".join(lines[-3:]))

    def close(self) -> None:
        """End the command and everything that it started. Never raises."""
        self.socket.close()
        if sys.platform == "win32":
            raise NotImplementedError
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal_number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
                break
        self._reader.join(_END_SECONDS)
