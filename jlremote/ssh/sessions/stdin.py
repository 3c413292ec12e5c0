"""What goes to a script's stdin: the script itself, its further input, and the end."""

from __future__ import annotations

import contextlib
from typing import Any

import paramiko

from jlremote.ssh.contract import Stdin

_PIECE = 1 << 20


class StdinSender:
    """The stdin of a channel that runs a script; nothing here waits.

    Args:
        channel: paramiko's, without a timeout.
        script: comes first.
        stdin: comes then.
        hold: whether there is no end, even when nothing is left.
    """

    def __init__(self, channel: Any, script: bytes, stdin: Stdin | None, *, hold: bool) -> None:
        self._channel = channel
        self._unsent = memoryview(script)
        self._stdin = stdin
        self._hold = hold
        self._over = False

    def send(self) -> bool:
        """Send what there is; return whether the channel's window is full and has to grow."""
        while not self._over:
            if self._unsent:
                if not self._send_piece():
                    return True
            elif self._stdin is None:
                self._end()
            elif not self._take(self._stdin):
                return False
        return False

    def _take(self, stdin: Stdin) -> bool:
        """Take the next piece, if it is there."""
        piece = stdin.take()
        if piece is None:
            return False
        self._unsent = memoryview(piece)
        if not piece:
            self._stdin = None
        return True

    def _send_piece(self) -> bool:
        """Send what the window takes; return whether it took anything."""
        try:
            sent = self._channel.send(self._unsent[:_PIECE])
        except TimeoutError:
            return False
        except (paramiko.SSHException, EOFError, OSError):
            sent = 0
        self._unsent = self._unsent[sent:]
        self._over = sent == 0  # the shell has ended; its status and output tell the rest
        return True

    def _end(self) -> None:
        self._over = True
        if not self._hold:
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                self._channel.shutdown_write()
