"""A folder by rsync, where this machine and the other one have it: only what differs is sent.

rsync runs here and starts its other half by `rsync_pipe`, whose streams the link gets. No path is
on its command line: both halves begin in their folder and copy `./`, so a name is neither an option
nor a pattern.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.link.client.link import ShellCommand
from jlremote.text import one_line, size_in_words
from jlremote.workflow.copies import rsync_pipe
from jlremote.workflow.copies.reached import Reached
from jlremote.workflow.copies.trees import CopyReport
from jlremote.workflow.host.conversation import connected

_RSYNC = ("rsync",)
# `--safe-links` leaves out what leads out of the folder; a part lies in a folder of its own.
_OPTIONS = (
    *("--recursive", "--links", "--safe-links", "--perms", "--times"),
    *("--partial-dir=.jlr-part", "--no-human-readable"),
    "--info=none,progress2,name1,nonreg1,stats2",
)
_SENDS = (3, 1)  # the first version with these options, here or there
_FETCHES = (3, 4)  # the first that writes nowhere else, whatever the other half says
_VANISHED = 24  # files that were deleted meanwhile
_VERSION = re.compile(r"rsync +version +v?(\d+)\.(\d+)")
_PROGRESS = re.compile(r" *(\d+) +(\d+%) +(\S+) +(\d+:\d\d:\d\d)")
_LEFT_OUT = re.compile(r'ignoring unsafe symlink "(.*)" -> ')
_SKIPPED = re.compile(r'skipping non-regular file "(.*)"')
_FILES = re.compile(r"Number of regular files transferred: (\d+)")
_SIZE = re.compile(r"Total transferred file size: (\d+)")
# The other half. Its version is asked for on the way: each command of an engine takes a while.
_BEGIN = """\
path=$1; shift
case $path in
  "~") path=$HOME ;;
  "~/"*) path=$HOME/${path#??} ;;
  /*) ;;
  *) path=./$path ;;
esac
case $(rsync --version 2>/dev/null) in
  *" version 3."[1-9]* | *" version v3."[1-9]* | *" version "[4-9].* | *" version v"[4-9].*) ;;
  *) exit NOT_THERE ;;
esac
"""
_INTO = """\
name=$1; shift
if [ -d "$path/." ]; then path=$path/$name; fi
[ -d "$path/." ] || case $path in */) false ;; *) mkdir -- "$path" 2>/dev/null ;; esac ||
  exit NOT_SO
"""
_FROM = '[ ! -L "$path" ] || exit NOT_SO\n'
_COPY = 'cd -- "$path" 2>/dev/null || exit NOT_SO\nexec "$@"\n'
_NOT_THERE = 77
_NOT_SO = 78  # the folder is not as it has to be
_PIECE = 128 << 10
_COMPLAINT = 500


def is_here(*, fetches: bool) -> bool:
    """Return whether this machine has an rsync that does what `_OPTIONS` ask for."""
    if os.name == "nt" or shutil.which(_RSYNC[0]) is None:
        return False
    told = subprocess.run((*_RSYNC, "--version"), capture_output=True, text=True, check=False)
    return _version(told.stdout) >= (_FETCHES if fetches else _SENDS)


class NotThere(Exception):
    """The other machine has no rsync that does what is asked for."""


def send_folder(report: CopyReport, reached: Reached, local: Path, remote: str, name: str) -> bool:
    """Copy what is in a folder of this machine to one there.

    That is `remote`, which is made, or if there is a folder of that name, `name` in it. Return
    `False` if it can be neither, and nothing was done.

    Raises:
        NotThere: rsync is not.
    """
    return _run(report, reached, local, (_INTO, remote, name), ("./", "there:./"))


def fetch_folder(report: CopyReport, reached: Reached, remote: str, local: Path) -> bool:
    """Copy what is in a folder there to one of this machine, which exists.

    Return `False` if there is none, or a link to one.

    Raises:
        NotThere: rsync is not.
    """
    return _run(report, reached, local, (_FROM, remote), ("there:./", "./"))


def _version(told: str) -> tuple[int, int]:
    found = _VERSION.search(told)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _quoted(word: object) -> str:
    """Return a word as rsync parts `--rsh`, where a doubled quote is one."""
    text = str(word).replace("'", "''")
    return f"'{text}'"


def _run(
    report: CopyReport,
    reached: Reached,
    local: Path,
    there: tuple[str, ...],
    paths: tuple[str, str],
) -> bool:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RSYNC_")}
    ours, theirs = socket.socketpair()
    helper = (sys.executable, "-I", "-S", rsync_pipe.__file__, theirs.fileno())
    with theirs:
        rsync = subprocess.Popen(
            (*_RSYNC, *_OPTIONS, f"--rsh={' '.join(map(_quoted, helper))}", "--", *paths),
            cwd=local,
            env=kept | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
        )
    listener = RsyncListener(rsync, report)
    ended: int | None = None
    try:
        with ours, closing(RsyncStreams(ours)) as streams, suppress(BrokenPipeError):
            if words := streams.command():
                begin = _other_half(there, words)
                ended = reached.run(
                    lambda place, checked: connected(
                        lambda terminal, passed: place.host.shell(
                            place.served, begin, terminal, checked=checked, streams=passed
                        ),
                        streams,
                    )
                )
    except BaseException:
        rsync.terminate()  # it keeps the part of the file that it was at
        raise
    finally:
        status = rsync.wait()
        listener.join()
    if ended == _NOT_THERE:
        raise NotThere
    if ended == _NOT_SO:
        return False
    if status not in (0, _VANISHED):
        raise JlrError(one_line(listener.complaint.strip()) or f"`rsync` ended with {status}")
    report.found(listener.size, listener.files)
    return True


def _other_half(there: tuple[str, ...], words: tuple[str, ...]) -> ShellCommand:
    """Return the command that begins it in a folder: shell text, with that one's arguments."""
    choose, remote, *name = there
    text = f"{_BEGIN}{choose}{_COPY}"
    for word, status in (("NOT_THERE", _NOT_THERE), ("NOT_SO", _NOT_SO)):
        text = text.replace(word, str(status))
    return ShellCommand(("sh", "-c", text, "sh", remote, *name, *words), copies=True)


class RsyncStreams:
    """What this machine's rsync writes and reads, as a `Screen`; `rsync_pipe` has sent them."""

    kind = None
    size = os.terminal_size((80, 24))

    def __init__(self, sender: socket.socket) -> None:
        self._open: list[int] = []
        self._words: list[bytes] = []
        if sys.platform == "win32":
            return
        told, descriptors, _, _ = socket.recv_fds(sender, _PIECE, 3)
        while told and not told.endswith(b"\0\0"):
            told += sender.recv(_PIECE) or b"\0\0"
        if told:
            self._open, self._words = descriptors, told[:-2].split(b"\0")

    def command(self) -> tuple[str, ...]:
        """Return the command line for the other half, nothing if rsync ended before."""
        return tuple(map(os.fsdecode, self._words))

    @property
    def descriptors(self) -> tuple[int, int, int]:
        stdin, stdout, stderr = self._open
        return stdin, stdout, stderr

    def taken(self) -> AbstractContextManager[None]:
        return nullcontext()

    def typed(self) -> Iterator[bytes | os.terminal_size]:
        while data := os.read(self._open[0], _PIECE):
            yield data
        yield b""

    def show(self, stream: str, data: bytes) -> None:
        _, stdout, stderr = self._open
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(stdout if stream == "stdout" else stderr, rest) :]

    def recover(self) -> None: ...

    def close(self) -> None:
        """Close them: rsync waits for that."""
        for one in self._open:
            os.close(one)


class RsyncListener:
    """Reads what rsync says, in two threads."""

    def __init__(self, rsync: subprocess.Popen[bytes], report: CopyReport) -> None:
        self.files = self.size = 0
        self.complaint = ""
        self._rsync = rsync
        self._report = report
        self._threads = [
            threading.Thread(target=listen, daemon=True) for listen in (self._follow, self._collect)
        ]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait until all is read."""
        for thread in self._threads:
            thread.join()

    def _follow(self) -> None:
        assert self._rsync.stdout is not None
        with io.TextIOWrapper(self._rsync.stdout, "utf-8", "replace", newline=None) as lines:
            for line in lines:
                self._take(line)

    def _take(self, line: str) -> None:
        if found := _PROGRESS.match(line):
            done, percent, rate, left = found.groups()
            self._report.advance(f"{size_in_words(int(done))}, {percent}, {rate}, {left} left")
        elif found := _LEFT_OUT.match(line):
            link = one_line(found[1])
            self._report.skipped(f"left out the link `{link}`: it leads out of the folder")
        elif found := _SKIPPED.match(line):
            path = one_line(found[1])
            self._report.skipped(f"left out `{path}`: it is neither file, folder nor link")
        elif found := _FILES.match(line):
            self.files = int(found[1])
        elif found := _SIZE.match(line):
            self.size = int(found[1])

    def _collect(self) -> None:
        assert self._rsync.stderr is not None
        told = self._rsync.stderr.read().decode("utf-8", "replace")
        self.complaint = told.partition("\n")[0][:_COMPLAINT]
