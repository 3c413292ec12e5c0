"""The command that a copy runs on the host: its streams, its errors, and the copy's progress."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from tarfile import TarError

from jlremote.errors import JlrError, LinkLost
from jlremote.hosts.context import Context, Progress
from jlremote.link.client.link import ShellCommand
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.link.wire.protocol import Unproved
from jlremote.selection.session_selection import known_place, place_of
from jlremote.text import one_line, size_in_words
from jlremote.times import clock
from jlremote.untrusted import Refused

_REPORT_SECONDS = 0.1
_MOST_LEFT_OUT = 1000
_COMPLAINT_BYTES = 2000
# What programs say beside the cause, and what it is in plain words.
_PROGRAM = r"^(?:\S*/)?(?:tar|bsdtar|sh|mv|chmod): (?:(?:line )?\d+: )?(?:\[\w+\] )?"
_NOISE = (
    (re.compile(_PROGRAM), ""),
    (re.compile(r"[^\s\"']*\.jlr-\w+\.part/+(?:files/+|\d+/+)?|^files/"), ""),
    (re.compile(r"Wrote only \d+ of \d+ bytes"), "no space is left, or a limit is reached"),
    (re.compile(r" \(\d+\)$"), ""),
)


class CopyReport:
    """Counts the files and bytes of a copy, and shows its rate and the time left."""

    def __init__(self, progress: Progress) -> None:
        self.files = self.total = 0
        self.skipped: list[str] = []
        self.advance: Callable[[str], None] = progress.advance
        self._progress = progress
        self._expected = self._done = 0
        self._began, self._shown = time.monotonic(), 0.0

    def expect(self, size: int) -> None:
        """Add bytes to the expected total before their files are counted."""
        self._expected += size

    def count(self, size: int) -> None:
        """Count a file that is copied."""
        self.files += 1
        self.total += size

    def leave_out(self, why: str) -> None:
        """Tell the person that something is not copied."""
        # An archive may have millions, and a file that changes comes again.
        if why in self.skipped or len(self.skipped) > _MOST_LEFT_OUT:
            return
        if len(self.skipped) == _MOST_LEFT_OUT:
            why = "left out more files than these"
        self.skipped.append(why)
        self._progress.note(why)

    def moved(self, count: int) -> None:
        """Count bytes that are copied."""
        self._done += count
        now = time.monotonic()
        if now - self._shown < _REPORT_SECONDS:
            return
        self._shown = now
        rate = self._done / max(now - self._began, _REPORT_SECONDS)
        total = max(self.total, self._expected)
        left = f", {clock((total - self._done) / rate)} left" if rate >= 1 else ""
        self.advance(
            f"{size_in_words(self._done)} of {size_in_words(total)},"
            f" {size_in_words(int(rate))}/s{left}"
        )


class CopyPlace:
    """The place of a copy, which runs."""

    def __init__(self, where: str | None, context: Context) -> None:
        self._where, self._context = where, context
        self._known = known_place(where, context)

    @contextmanager
    def process(self, argv: tuple[str, ...]) -> Iterator[RemoteProcess]:
        """Run a command there; leaving the context ends it."""
        command = ShellCommand(argv, copies=True)
        with ExitStack() as stack:
            if self._known is not None:
                link, place = self._known
                try:
                    process = stack.enter_context(link.shell(place, command, None, checked=False))
                except Unproved:
                    self._known = None
            if self._known is None:
                link, place = place_of(self._where, self._context)
                process = stack.enter_context(link.shell(place, command, None, checked=True))
            yield process


def in_words(files: int, size: int) -> str:
    """Return how many files, and bytes, were copied: `2 files, 1.5 MB`."""
    return f"{files} {'file' if files == 1 else 'files'}, {size_in_words(size)}"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise each expected failure of a copy as an error for the person."""
    try:
        yield
    except (Refused, EOFError, TarError) as odd:
        raise JlrError(f"refused what the host sent: {one_line(str(odd))}") from odd
    except OSError as failure:
        where = f"`{failure.filename}`: " if failure.filename else ""
        raise JlrError(f"{where}{failure.strerror or failure}") from failure


class Complaint:
    """The beginning of what a command writes to stderr."""

    def __init__(self) -> None:
        self._kept = b""

    def add(self, data: bytes) -> None:
        self._kept += data[: _COMPLAINT_BYTES - len(self._kept)]

    @property
    def lines(self) -> list[str]:
        lines = self._kept.decode("utf-8", "replace").splitlines()
        return [line for line in map(one_line, lines) if line]

    def cause(self, status: int) -> str:
        """Return why a command failed, without its own name and names that only jlr knows."""
        text = self.lines[0] if self.lines else f"its command ended with {status}"
        for noise, instead in _NOISE:
            text = noise.sub(instead, text)
        return text


class FarOutput(io.RawIOBase):
    """The stdout of a command there, as a file; what comes of its stderr goes to `complaint`."""

    def __init__(self, process: RemoteProcess, complaint: Complaint) -> None:
        self._output, self._complaint = iter(process), complaint
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            stream, data = next(self._output, ("end", b""))
            if stream == "end":
                return 0
            if stream == "stdout":
                self._rest = memoryview(data)
            else:
                self._complaint.add(data)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def exchange(
    place: CopyPlace,
    argv: tuple[str, ...],
    stdin: Iterable[bytes],
    take: Callable[[str, bytes], None],
) -> int:
    """Return a command's exit status; `take` gets its output. What fails in `stdin` is raised."""
    failures: list[BaseException] = []

    def give() -> None:
        try:
            if all(map(process.give, stdin)):
                process.give(b"")
        except BaseException as failure:  # noqa: BLE001 - raised below
            failures.append(failure)
            process.hang_up()

    with place.process(argv) as process:
        threading.Thread(target=give, daemon=True).start()
        try:
            for stream, data in process:
                take(stream, data)
        except LinkLost:
            if failures:
                raise failures[0] from None
            raise
    assert process.status is not None
    return process.status
