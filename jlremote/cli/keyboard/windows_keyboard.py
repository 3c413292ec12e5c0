"""The keyboard of a Windows console, key by key, as a terminal sends them."""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import msvcrt
import os
import sys
import threading
from collections.abc import Iterator
from ctypes import wintypes
from queue import SimpleQueue
from typing import TextIO

assert sys.platform == "win32"

TERMINAL = ("CONIN$", "CONOUT$")  # where questions are read from and written to
_PIECE = 1 << 12
_STDOUT = 1
# A console reports its size only among key events, which `read` does not give.
_LOOK_SECONDS = 0.2
_UTF8 = 65001
# wincon.h: ENABLE_PROCESSED_INPUT, ENABLE_LINE_INPUT and ENABLE_ECHO_INPUT go,
# ENABLE_VIRTUAL_TERMINAL_INPUT comes.
_ECHO_INPUT = 0x0004
_COOKED_INPUT, _KEYS_AS_SEQUENCES = 0x0007, 0x0200
# ENABLE_PROCESSED_OUTPUT, ENABLE_VIRTUAL_TERMINAL_PROCESSING, DISABLE_NEWLINE_AUTO_RETURN.
_SEQUENCES_AS_MEANT = 0x0001 | 0x0004 | 0x0008
_kernel = ctypes.windll.kernel32


class WindowsKeyboard:
    """The keys and the size of the console behind the file descriptor of its input."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._over = threading.Event()

    @contextlib.contextmanager
    def raw(self) -> Iterator[None]:
        ours, shown = (msvcrt.get_osfhandle(number) for number in (self._descriptor, _STDOUT))
        input_mode, output_mode = _mode(ours), _mode(shown)
        pages = _kernel.GetConsoleCP(), _kernel.GetConsoleOutputCP()
        try:
            _kernel.SetConsoleCP(_UTF8)
            _kernel.SetConsoleOutputCP(_UTF8)
            _kernel.SetConsoleMode(ours, input_mode & ~_COOKED_INPUT | _KEYS_AS_SEQUENCES)
            _kernel.SetConsoleMode(shown, output_mode | _SEQUENCES_AS_MEANT)
            yield
        finally:
            self._over.set()
            _kernel.SetConsoleMode(ours, input_mode)
            _kernel.SetConsoleMode(shown, output_mode)
            _kernel.SetConsoleCP(pages[0])
            _kernel.SetConsoleOutputCP(pages[1])

    def events(self) -> Iterator[bytes | os.terminal_size]:
        events: SimpleQueue[bytes | os.terminal_size] = SimpleQueue()
        for watch in (self._read, self._look):
            threading.Thread(target=watch, args=(events,), daemon=True).start()
        while True:
            yield events.get()

    def _read(self, events: SimpleQueue[bytes | os.terminal_size]) -> None:
        # What a console gives as bytes has no letters beyond ASCII, but in new versions.
        handle = msvcrt.get_osfhandle(self._descriptor)
        keys, count = ctypes.create_unicode_buffer(_PIECE), wintypes.DWORD()
        decoder = codecs.getincrementaldecoder("utf-16-le")("replace")
        while _kernel.ReadConsoleW(handle, keys, _PIECE, ctypes.byref(count), None):
            pairs = ctypes.string_at(keys, 2 * count.value)
            if typed := decoder.decode(pairs):
                events.put(typed.encode())
        events.put(b"")  # the console's window was closed

    def _look(self, events: SimpleQueue[bytes | os.terminal_size]) -> None:
        size = os.get_terminal_size(_STDOUT)
        while not self._over.wait(_LOOK_SECONDS):
            if size != (size := os.get_terminal_size(_STDOUT)):
                events.put(size)


def _mode(handle: int) -> int:
    mode = wintypes.DWORD()
    _kernel.GetConsoleMode(handle, ctypes.byref(mode))
    return mode.value


def typed_line(reader: TextIO) -> str:
    """Return the next line that is typed, empty at the end."""
    return reader.readline()


@contextlib.contextmanager
def without_echo(reader: TextIO) -> Iterator[None]:
    """Switch the console's echo off during a `with` block."""
    handle = msvcrt.get_osfhandle(reader.fileno())
    before = _mode(handle)
    _kernel.SetConsoleMode(handle, before & ~_ECHO_INPUT)
    try:
        yield
    finally:
        _kernel.SetConsoleMode(handle, before)
