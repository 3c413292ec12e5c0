"""This end of `jlr shell`: what is typed and what is shown, as it is.

What the host sends goes to the terminal raw, as with ssh: that is what it is for.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager

from jlremote.cli.keyboard.escapes import Escapes
from jlremote.cli.keyboard.keyboard import Keyboard
from jlremote.cli.screen.terminal import not_written
from jlremote.errors import JlrError
from jlremote.workflow.session.shell import TerminalClosed

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_PIECE = 1 << 16
# The main screen, its cursor, no mouse, no bracketed paste, no colours. A program that lost its
# terminal while it had changed these cannot change them back.
_AS_BEFORE = b"\x1b[?1047l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[0m"


class LocalScreen:
    """The process's own stdin, stdout and stderr."""

    def __init__(self) -> None:
        self._keyboard = Keyboard(_STDIN)

    @property
    def kind(self) -> str | None:
        """What `$TERM` is; without a terminal on both ends there is none, as with `docker exec`."""
        if not (os.isatty(_STDIN) and os.isatty(_STDOUT)):
            return None
        return os.environ.get("TERM") or "xterm-256color"

    @property
    def size(self) -> os.terminal_size:
        """Columns and rows as they are now."""
        return os.get_terminal_size(_STDOUT)

    def taken(self) -> AbstractContextManager[None]:
        """Pass every key on, Ctrl-C too, for the time of a `with` block."""
        return contextlib.nullcontext() if self.kind is None else self._keyboard.raw()

    def typed(self) -> Iterator[bytes | os.terminal_size]:
        """Give what is typed, and the size whenever it changes."""
        return self._piped() if self.kind is None else self._keys()

    def show(self, stream: str, data: bytes) -> None:
        """Write what came.

        Raises:
            JlrError: it cannot be written, as on a full disk.
        """
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(_STDOUT if stream == "stdout" else _STDERR, rest) :]
        except BrokenPipeError:
            raise
        except OSError as failure:
            raise not_written(failure) from failure

    def recover(self) -> None:
        """Mend what a program may have left, and begin a new line."""
        if self.kind is not None:
            with contextlib.suppress(OSError, JlrError):
                self.show("stdout", _AS_BEFORE + b"\r\n")

    def _keys(self) -> Iterator[bytes | os.terminal_size]:
        escapes = Escapes()
        for event in self._keyboard.events():
            if event == b"":
                raise TerminalClosed  # the terminal is gone
            if isinstance(event, bytes):
                event = escapes.without(event)
                if escapes.hung_up:
                    raise TerminalClosed
            if event:
                yield event

    def _piped(self) -> Iterator[bytes]:
        data = b"-"
        while data:
            try:
                data = os.read(_STDIN, _PIECE)
            except OSError:  # it was closed, or never opened
                data = b""
            yield data
