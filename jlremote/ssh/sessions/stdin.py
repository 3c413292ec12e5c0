"""The stdin of a script's channel: the script, then further input, then its end."""

from __future__ import annotations

import contextlib
from typing import Any

import paramiko

from jlremote.ssh.contract import Stdin

_PIECE = 1 << 20


class StdinSender:
    """Sends a script and its input over a channel; nothing here waits.

    Args:
        channel: paramiko's, without a timeout.
        script: sent first.
        stdin: sent then.
        hold: whether the channel's stdin stays open at the end.
    """

    def __init__(self, channel: Any, script: bytes, stdin: Stdin | None, *, hold: bool) -> None:
        self._channel = channel
        self._unsent = memoryview(script)
        self._stdin = stdin
        self._hold = hold
        self._over = False

    def send(self) -> bool:
        """Send what has arrived; return whether the channel's window is full and has to grow."""
        while not self._over:
            if self._unsent:
                if not self._send_piece():
                    return True
            elif self._stdin is None:
                self._end()
            elif (piece := self._stdin.take()) is None:
                return False
            else:
                self._unsent = memoryview(piece)
                self._stdin = self._stdin if piece else None
        return False

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
