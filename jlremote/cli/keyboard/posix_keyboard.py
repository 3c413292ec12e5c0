"""The keyboard of a POSIX terminal, key by key."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TextIO

assert sys.platform != "win32"

TERMINAL = ("/dev/tty", "/dev/tty")  # where questions are read from and written to
_PIECE = 1 << 12


class PosixKeyboard:
    """The keys and the size of the terminal behind a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._changed, self._tell_changed = -1, -1

    @contextlib.contextmanager
    def raw(self) -> Iterator[None]:
        """Pass on every key, also those typed ahead, and restore the terminal afterwards."""
        self._changed, self._tell_changed = os.pipe()
        os.set_blocking(self._tell_changed, False)
        handler = signal.signal(signal.SIGWINCH, self._resized)
        before = termios.tcgetattr(self._descriptor)
        try:
            tty.setraw(self._descriptor, termios.TCSADRAIN)
            yield
        finally:
            with contextlib.suppress(termios.error):  # the terminal's window was closed
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)
            signal.signal(signal.SIGWINCH, handler)

    def events(self) -> Iterator[bytes | os.terminal_size]:
        while True:
            ready, _, _ = select.select([self._descriptor, self._changed], [], [])
            if self._changed in ready:
                os.read(self._changed, _PIECE)
                yield os.get_terminal_size(self._descriptor)
            if self._descriptor in ready:
                yield self._read()

    @contextlib.contextmanager
    def listen(self, keys: bytes, act: Callable[[], None]) -> Iterator[None]:
        """Call `act` when `keys` are typed; drop all other keys, but Ctrl-C and Ctrl-Z."""
        over, end = os.pipe()
        before = termios.tcgetattr(self._descriptor)
        listener = threading.Thread(target=self._await_keys, args=(keys, act, over), daemon=True)
        handler = signal.signal(signal.SIGCONT, lambda *_: self._give_each_key())
        try:
            self._give_each_key()
            listener.start()
            yield
        finally:
            signal.signal(signal.SIGCONT, handler)
            os.close(end)
            listener.join()
            os.close(over)
            if not self._in_background():
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)

    def _give_each_key(self) -> None:
        """Let the terminal give each key at once; the shell undoes it while this one is stopped."""
        if self._in_background():
            return
        tty.setcbreak(self._descriptor, termios.TCSADRAIN)
        mode = termios.tcgetattr(self._descriptor)
        mode[0] &= ~termios.IXON  # else the terminal keeps Ctrl-Q
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, mode)

    def _in_background(self) -> bool:
        """Return whether the terminal is another job's; one that was closed is so, too."""
        try:
            return os.tcgetpgrp(self._descriptor) != os.getpgrp()
        except OSError:
            return True

    def _await_keys(self, keys: bytes, act: Callable[[], None], over: int) -> None:
        typed = piece = b"-"
        while piece and keys not in typed:
            ready, _, _ = select.select([self._descriptor, over], [], [])
            if over in ready or self._in_background():  # there a read would stop the process
                return
            piece = self._read()
            typed = typed[-len(keys) :] + piece
        if piece:
            act()

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _PIECE)
        except OSError:  # EIO: the terminal's window was closed
            return b""

    def _resized(self, _number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):  # a byte is already waiting
            os.write(self._tell_changed, b"-")


def typed_line(reader: TextIO) -> str:
    """Return the next line that is typed, empty at the end."""
    # A Ctrl-C just before a `read` that waits would be noticed at its end only.
    while not select.select([reader], [], [], 0.2)[0]:
        pass
    return reader.readline()


@contextlib.contextmanager
def without_echo(reader: TextIO) -> Iterator[None]:
    """Switch the terminal's echo off during a `with` block."""
    descriptor = reader.fileno()
    before = termios.tcgetattr(descriptor)
    silent = list(before)
    silent[3] = before[3] & ~termios.ECHO
    # TCSAFLUSH drops what was typed before the prompt.
    termios.tcsetattr(descriptor, termios.TCSAFLUSH, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
