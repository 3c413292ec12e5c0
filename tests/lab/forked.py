"""Commands that are forked with a session of their own, as if a shell had started them."""

from __future__ import annotations

import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from typing import TYPE_CHECKING, Any, AnyStr

import pexpect
from ptyprocess.ptyprocess import PtyProcess  # type: ignore[import-untyped]

from tests.lab.fork_server import Fork, fork_server

if TYPE_CHECKING:
    Spawn = pexpect.spawn[str]
else:
    Spawn = pexpect.spawn


class ForkedProcess(Fork):
    """A process whose status may be asked again and again."""

    _status: int | None = None

    def status(self, *, wait: bool) -> int | None:
        """Return what `os.waitpid` would: nothing while it runs."""
        if self._status is None and (wait or select.select([self._answer], [], [], 0)[0]):
            code = self.wait()
            self._status = code << 8 if code >= 0 else -code
        return self._status


class ForkedCommand(subprocess.Popen[AnyStr]):
    """`subprocess.Popen` of `jlr` in a session of its own, whose terminal is one of its streams."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        **streams: Any,
    ) -> None:
        self._where = (env, cwd or Path.cwd())
        super().__init__(argv, **streams)

    def _execute_child(self, argv: Sequence[str], *args: Any) -> None:
        pipes = args[9:15]  # each with the end that is not the command's
        given = (pipes[0], pipes[3], pipes[5])
        streams = [own if own >= 0 else number for number, own in enumerate(given)]
        self._forked = ForkedProcess(fork_server().door, argv, *self._where, streams)
        self.pid = self._forked.pid
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        status = self._forked.status(wait=not wait_flags & os.WNOHANG)
        return (0, 0) if status is None else (self.pid, status)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and (status := self._forked.status(wait=False)) is not None:
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class _ForkedTerminal(PtyProcess):  # type: ignore[misc]
    """What pexpect has of a process in a terminal."""

    def __init__(self, forked: ForkedProcess, fd: int) -> None:
        super().__init__(forked.pid, fd)
        self._forked = forked

    def isalive(self) -> bool:
        return not self.terminated and not self._ended(self._forked.status(wait=self.flag_eof))

    def wait(self) -> int | None:
        if not self.terminated:
            self._ended(self._forked.status(wait=True))
        return self.exitstatus

    def _ended(self, status: int | None) -> bool:
        if status is None:
            return False
        self.status, self.terminated = status, True
        code = os.waitstatus_to_exitcode(status)
        self.exitstatus = code if code >= 0 else None
        self.signalstatus = -code if code < 0 else None
        return True


class ForkedTerminal(Spawn):
    def _spawnpty(
        self,
        args: list[bytes],
        *,
        env: Mapping[str, str],
        cwd: str,
        dimensions: tuple[int, int],
        **_: Any,
    ) -> PtyProcess:
        master, slave = pty.openpty()
        try:
            ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", *dimensions, 0, 0))
            words = list(map(os.fsdecode, args))
            forked = ForkedProcess(fork_server().door, words, env, Path(cwd), (slave,) * 3)
        finally:
            os.close(slave)
        return _ForkedTerminal(forked, master)
