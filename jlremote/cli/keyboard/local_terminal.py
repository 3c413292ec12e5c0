"""The local end of `jlr shell`: typed keys and shown bytes, unfiltered as with ssh."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager

from jlremote.cli.keyboard import Keyboard
from jlremote.cli.screen.terminal import write_all
from jlremote.errors import JlrError
from jlremote.hosts.attached_process import TerminalClosed

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_PIECE = 1 << 18
# The main screen, its cursor, no mouse, no bracketed paste, no colours: a program that lost its
# terminal cannot reset what it changed.
_RESET = b"\x1b[?1047l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[0m"


class LocalTerminal:
    """The process's own stdin, stdout and stderr."""

    def __init__(self) -> None:
        self._keyboard = Keyboard(_STDIN)

    @property
    def kind(self) -> str | None:
        drawn = os.isatty(_STDIN) and os.isatty(_STDOUT)
        return os.environ.get("TERM") or "xterm-256color" if drawn else None

    @property
    def in_foreground(self) -> bool:
        """Whether stdin is a terminal whose Ctrl-C reaches this process."""
        if not os.isatty(_STDIN):
            return False
        return sys.platform == "win32" or os.tcgetpgrp(_STDIN) == os.getpgrp()

    @property
    def size(self) -> os.terminal_size:
        return os.get_terminal_size(_STDOUT)

    def taken(self) -> AbstractContextManager[None]:
        """Pass on every key, also Ctrl-C, during a `with` block."""
        return contextlib.nullcontext() if self.kind is None else self._keyboard.raw()

    def leaving(self, detach_keys: str) -> AbstractContextManager[None]:
        """Let the keys that detach act as Ctrl-C during a `with` block, on Windows only that."""
        if sys.platform == "win32":
            return contextlib.nullcontext()
        main = threading.main_thread().ident
        assert main is not None, "it runs"
        named = detach_keys.split(",")
        keys = bytes(ord(key[-1].upper()) ^ 0x40 if key[1:] else ord(key) for key in named)
        return self._keyboard.listen(keys, lambda: signal.pthread_kill(main, signal.SIGINT))

    def typed(self) -> Iterator[bytes | os.terminal_size]:
        """Give the typed bytes, and the size whenever it changes."""
        if self.kind is None:
            yield from self.piped()
            return
        escapes = Escapes()
        for event in self._keyboard.events():
            gone = event == b""
            if isinstance(event, bytes):
                event = escapes.without(event)
            if gone or escapes.hung_up:
                raise TerminalClosed
            if event:
                yield event

    def show(self, stream: str, data: bytes) -> None:
        """Write bytes of the host."""
        write_all(_STDOUT if stream == "stdout" else _STDERR, data)

    def recover(self) -> None:
        """Reset what a program may have changed, and begin a new line."""
        if self.kind is not None:
            with contextlib.suppress(OSError, JlrError):
                self.show("stdout", _RESET + b"\r\n")

    def piped(self) -> Iterator[bytes]:
        """Give the bytes of stdin as they come, nothing at the end."""
        data = b"-"
        while data:
            try:
                data = os.read(_STDIN, _PIECE)
            except OSError:  # it was closed, or never opened
                data = b""
            yield data


class Escapes:
    """A filter for the escapes `~.` and `~~` at the beginning of a typed line."""

    def __init__(self) -> None:
        self.hung_up = False  # whether `~.` was typed
        self._at_beginning = True
        self._tilde = False

    def without(self, typed: bytes) -> bytes:
        """Return the keys for the host; a tilde that may begin an escape waits for the next key."""
        out = bytearray()
        for number in typed:
            key = bytes((number,))
            if self._tilde:
                self._tilde = False
                if key == b".":
                    self.hung_up = True
                    return bytes(out)
                out += b"~" if key == b"~" else b"~" + key
            elif key == b"~" and self._at_beginning:
                self._tilde = True
                continue
            else:
                out += key
            self._at_beginning = key in (b"\r", b"\n")
        return bytes(out)
