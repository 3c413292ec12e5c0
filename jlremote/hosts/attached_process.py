"""A process on the host whose streams are the user's terminal, or stdin and stdout.

What outlasts its connection is attached to again by itself, as soon as the link is back.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Protocol

from jlremote.errors import Authentication, HostKeyChanged, LinkLost, Unreachable
from jlremote.link.client.call import LinkStuck
from jlremote.link.client.link import Link
from jlremote.link.client.remote_process import RemoteProcess, TerminalKind
from jlremote.text import printable

# What may be over in a moment. Without its VPN a laptop may find another host by that name; no
# secret is sent to it.
_AWAY = (Unreachable, LinkStuck, HostKeyChanged)
_WAITING = b"connection lost, waiting; Enter ~. ends it\r\n"
_BACK = b"connected again\r\n"
_ENDED = "`jlr run` is for long work, and `jlr shell --keep` outlasts a loss"
# How long one attempt to attach again may wait in the link, and the least time between two.
_PATIENCE_SECONDS, _PAUSE_SECONDS = 60.0, 1.0
# How long a link may take to end what runs in the terminal, before that is left to it.
_END_SECONDS = 2.0
_PIECE = 256 << 10


class TerminalClosed(Exception):
    """The person typed `~.` or closed the terminal; with `True` what runs there goes on."""


Opened = AbstractContextManager[RemoteProcess]
Again = Callable[[Link, int], Opened]  # gets how many bytes of output were shown


@dataclass(frozen=True)
class Lasting:
    """How to attach again to what outlasts its connection."""

    host: Link  # asks the person nothing, for all keys belong to the terminal
    again: Again
    hint: str  # for an error that ends it all the same, as of a login that is refused or would ask
    sign: bytes = b""  # which it prints first, if indeed it outlasts a loss
    over_loss_only: bool = False  # whether the link ends it else


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
        """Yield what is typed, nothing at the end, and each new size (`TerminalClosed`)."""

    def show(self, stream: str, data: bytes) -> None:
        """Write output of `stdout` or `stderr` unchanged."""

    def recover(self) -> None:
        """Reset the terminal after a program that could not clean up."""


def terminal_of(screen: Screen) -> TerminalKind | None:
    """Return the terminal for a process that is connected to the screen, `None` for none."""
    return TerminalKind(screen.kind, screen.size) if screen.kind else None


def run_attached(opened: Opened, screen: Screen, lasting: Lasting | None = None) -> int:
    """Connect a process to the screen; return its exit status (`TerminalClosed`, `LinkLost`)."""
    with opened as process, screen.taken():
        return _Attachment(process, screen, lasting).to_the_end()


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


class _Attachment:
    """A process that is connected to the screen, with a thread for each direction."""

    # The main thread only waits: however stuck the link is, `~.` ends it.

    def __init__(self, process: RemoteProcess, screen: Screen, lasting: Lasting | None) -> None:
        self._process: RemoteProcess | None = process  # `None` while the connection is away
        self._screen = screen
        self._lasting = lasting
        self._sign = lasting.sign if lasting else b""  # empty once it was shown
        self._shown = 0
        self._status: int | None = None
        self._failure: Exception | None = None
        self._closed = False
        self._over = threading.Event()

    def to_the_end(self) -> int:
        threading.Thread(target=self._type, daemon=True).start()
        if self._screen.kind is None:  # a Ctrl-C comes as a signal
            self._show_all()
        else:
            threading.Thread(target=self._show_all, daemon=True).start()
            try:
                self._over.wait()
            except BaseException:
                self._close()
                raise
        if self._status is not None and not self._closed:
            return self._status
        stays, failure = self._stays(), self._failure
        self._screen.recover()
        if self._closed:
            raise TerminalClosed(stays)
        assert failure is not None
        if isinstance(failure, LinkLost | Authentication):
            became = "what runs there keeps running" if stays else "the programs there were ended"
            failure.message = f"{failure.message}; {became}"
            failure.hint = self._lasting.hint if stays and self._lasting else _ENDED
        raise failure

    def _stays(self) -> bool:
        """Return whether what ran there goes on; the link has ended what it could reach."""
        back = self._lasting
        if back is None or self._sign:
            return False
        told = back.over_loss_only and self._process is not None
        return not (told and (back.host.disconnected or back.host.answers()))

    def _type(self) -> None:
        try:
            for event in self._screen.typed():
                process = self._process
                if process is None:
                    continue
                if isinstance(event, os.terminal_size):
                    process.resize(event)
                elif not process.give(event) and self._lasting is None:
                    return
        except TerminalClosed:
            self._close()

    def _close(self) -> None:
        self._closed = True
        if (process := self._process) is not None:
            process.hang_up()
            if not self._over.wait(_END_SECONDS):
                self._process = None
        self._over.set()

    def _show_all(self) -> None:
        try:
            assert self._process is not None
            self._show(self._process)
            while self._status is None:
                self._attach(self._way_back())
        except Exception as failure:  # noqa: BLE001 - for the main thread
            self._failure = failure
        finally:
            self._over.set()

    def _show(self, process: RemoteProcess) -> None:
        """Show the output to its end, or until a connection is lost that may come back."""
        try:
            for stream, data in process:
                if self._sign and self._sign in data:
                    data, self._sign = data.replace(self._sign, b"", 1), b""
                self._screen.show(stream, data)
                self._shown += len(data)
            self._status = process.status
        except _AWAY as lost:
            self._failure = lost
            process.leave()
            self._way_back()
            self._process = None
            self._screen.recover()
            self._screen.show("stdout", _WAITING)

    def _way_back(self) -> Lasting:
        """Return how to attach again; raise the loss if that cannot be, or is not wanted."""
        back = self._lasting
        if back is None or self._sign or self._closed or back.host.disconnected:
            assert self._failure is not None
            raise self._failure
        return back

    def _attach(self, back: Lasting) -> None:
        began = time.monotonic()
        try:
            back.host.status(connect=True, patience=_PATIENCE_SECONDS)
            with back.again(back.host, self._shown) as process:
                self._process = process
                process.resize(self._screen.size)  # it may have changed meanwhile
                self._screen.show("stdout", _BACK)
                self._show(process)
        except _AWAY as lost:
            told, self._failure = isinstance(self._failure, HostKeyChanged), lost
            if isinstance(lost, HostKeyChanged) and not told:
                self._screen.show("stdout", f"{printable(lost.message)}; waiting\r\n".encode())
        if self._status is None:
            self._over.wait(max(0.0, began + _PAUSE_SECONDS - time.monotonic()))
