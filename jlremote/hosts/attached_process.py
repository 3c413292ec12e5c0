"""A process on the host whose streams are the user's terminal, or stdin and stdout."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from jlremote.errors import LinkLost
from jlremote.link.client.remote_process import RemoteProcess, TerminalKind

_PIECE = 256 << 10


class TerminalClosed(Exception):
    """The person typed `~.` or closed the terminal, so what runs there is to end."""


class Screen(Protocol):
    """The user's terminal, or stdin and stdout that are none."""

    @property
    def kind(self) -> str | None:
        """The value of `$TERM`, `None` unless both stdin and stdout are a terminal."""

    @property
    def size(self) -> os.terminal_size: ...

    def taken(self) -> AbstractContextManager[None]:
        """Pass every key on unchanged, Ctrl-C too, within a `with` block."""

    def typed(self) -> Iterator[bytes | os.terminal_size]:
        """Yield what is typed, nothing at the end, and the size at each change.

        Raises:
            TerminalClosed: the user typed `~.` or closed the terminal.
        """

    def show(self, stream: str, data: bytes) -> None:
        """Write output of `stdout` or `stderr` unchanged."""

    def recover(self) -> None:
        """Reset the terminal after a program that could not clean up."""


def terminal_of(screen: Screen) -> TerminalKind | None:
    """Return the terminal for a process that is connected to the screen, `None` for none."""
    return TerminalKind(screen.kind, screen.size) if screen.kind else None


def run_attached(opened: AbstractContextManager[RemoteProcess], screen: Screen) -> int:
    """Connect a process to the screen, end it at last, and return its exit status.

    Raises:
        TerminalClosed: the user typed `~.` or closed the terminal.
        LinkLost: the connection broke.
    """
    with opened as process:
        process.wait_connected()
        with screen.taken():
            typing = _Typing(process, screen)
            typing.start()
            try:
                for stream, data in process:
                    screen.show(stream, data)
            except LinkLost:
                if typing.hung_up:
                    raise TerminalClosed from None
                raise
    assert process.status is not None
    return process.status


def carry(
    link: socket.socket, read: Callable[[int], bytes], write: Callable[[memoryview], int]
) -> None:
    """Carry what can be read to a socket of the link, and its answers back, until it is closed."""
    link.setblocking(True)

    def send() -> None:
        with suppress(OSError):
            while data := read(_PIECE):
                link.sendall(data)
            link.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    with suppress(OSError):
        while data := link.recv(_PIECE):
            rest = memoryview(data)
            while rest:
                rest = rest[write(rest) :]


class _Typing(threading.Thread):
    """The thread that passes keys on, until the process ends."""

    def __init__(self, process: RemoteProcess, screen: Screen) -> None:
        super().__init__(daemon=True)
        self.hung_up = False
        self._process = process
        self._screen = screen

    def run(self) -> None:
        try:
            for event in self._screen.typed():
                if isinstance(event, os.terminal_size):
                    self._process.resize(event)
                elif not self._process.give(event):
                    return
        except TerminalClosed:
            self.hung_up = True
            self._process.hang_up()
