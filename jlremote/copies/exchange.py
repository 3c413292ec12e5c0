"""A command in a copy's place, and a function of this process at the other end of its streams."""

from __future__ import annotations

import io
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass

from jlremote.hosts.attached_process import Screen, run_attached
from jlremote.hosts.context import Context
from jlremote.link.client.link import ShellCommand
from jlremote.link.wire.protocol import Unproved
from jlremote.sessions.shell import place_of, recorded, recorded_place
from jlremote.text import one_line

_PIECE = 128 << 10
_COMPLAINT = 2000
# What programs say beside the cause, and what it is in plain words.
_NOISE = (
    (
        re.compile(
            r"^(?:\S*/)?(?:tar|bsdtar|rsync|sh|mv|chmod): (?:(?:line )?\d+: )?(?:\[\w+\] )?"
        ),
        "",
    ),
    (re.compile(r"[^\s\"']*\.jlr-\w+\.part/+(?:files/+|\d+/+)?|^files/"), ""),
    (re.compile(r"Wrote only \d+ of \d+ bytes"), "no space is left, or a limit is reached"),
    (re.compile(r" \(\d+\)$"), ""),
)


class Reached:
    """The place of a copy; a session that the link knows to run is not inspected first."""

    def __init__(self, where: str | None, context: Context) -> None:
        self._where = where
        self._context = context
        record = recorded(where)
        self._checked = record is None
        self._place = (
            place_of(where, context) if record is None else recorded_place(record, context)
        )

    def run(self, argv: tuple[str, ...], streams: Screen) -> int:
        """Run a command there and return its exit status."""
        if not self._checked:
            with suppress(Unproved):
                status = self._run(argv, streams)
                self._checked = True
                return status
            self._place = place_of(self._where, self._context)
            self._checked = True
        return self._run(argv, streams)

    def _run(self, argv: tuple[str, ...], streams: Screen) -> int:
        place, command = self._place, ShellCommand(argv, copies=True)
        opened = place.host.shell(place.served, command, None, checked=self._checked)
        return run_attached(opened, streams)


class CopyStreams:
    """Files or sockets as the stdin, stdout and stderr of a command, as a `Screen` has them."""

    kind = None
    size = os.terminal_size((80, 24))

    def __init__(self, stdin: io.RawIOBase, stdout: io.RawIOBase, stderr: io.RawIOBase) -> None:
        self.stdin, self.written = stdin, {"stdout": stdout, "stderr": stderr}

    def taken(self) -> AbstractContextManager[None]:
        return nullcontext()

    def typed(self) -> Iterator[bytes | os.terminal_size]:
        while data := self.stdin.read(_PIECE):
            yield data
        yield b""

    def show(self, stream: str, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self.written[stream].write(rest) or 0 :]

    def recover(self) -> None: ...

    def close(self) -> None:
        """Close them: what is at their other end waits for that."""
        for one in (self.stdin, *self.written.values()):
            one.close()


class Complaint:
    """The beginning of what a command prints, read by a thread."""

    def __init__(self, said: io.RawIOBase) -> None:
        self._said = said
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def lines(self) -> list[str]:
        """Wait for the end of the output, and return its lines without empty ones."""
        self._thread.join()
        lines = self._kept.decode("utf-8", "replace").splitlines()
        return [line for line in map(one_line, lines) if line]

    def _read(self) -> None:
        with self._said as said, suppress(OSError):
            while data := said.read(_PIECE):
                self._kept += data[: _COMPLAINT - len(self._kept)]


@dataclass(frozen=True)
class Ended:
    """How a command there ended, and what it complained of."""

    status: int
    complaint: list[str]

    @property
    def reason(self) -> str:
        first = self.complaint[0] if self.complaint else f"its command ended with {self.status}"
        return cause(first)


def cause(complaint: str) -> str:
    """Return what a program complains of, without its own name and names that only jlr knows."""
    for noise, instead in _NOISE:
        complaint = noise.sub(instead, complaint)
    return complaint


def exchange(
    reached: Reached, argv: tuple[str, ...], local: Callable[[socket.socket], None]
) -> Ended:
    """Run a command there while `local`, in a thread, has the other end of stdin and stdout.

    What `local` raises is raised here, unless it only found that a command that failed had ended.
    """
    ours, far = socket.socketpair()
    heard, errors = socket.socketpair()
    complaint = Complaint(_raw(heard))

    def work() -> None:
        try:
            local(ours)
        except BaseException:
            _shut(ours)  # the command ends, too
            raise

    with ours, ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            with closing(CopyStreams(_raw(far.dup()), _raw(far), _raw(errors))) as streams:
                status = reached.run(argv, streams)
        except BrokenPipeError:
            status = 0  # `local` has failed
        except BaseException:
            _shut(ours)
            raise
        try:
            done.result()
        except EOFError:
            if not status:
                raise
        except (BrokenPipeError, ConnectionResetError) as gone:
            if not status:
                raise EOFError("its command ended before the copy did") from gone
    return Ended(status, complaint.lines())


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


def _raw(end: socket.socket) -> io.RawIOBase:
    with end:  # the file keeps it open
        return end.makefile("rwb", buffering=0)
