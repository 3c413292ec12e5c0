"""A folder by rsync, where this machine and the other one have it: only what differs is sent.

rsync runs here and starts its other half by `_PIPE`, whose streams the link gets. No path is on
its command line: both halves begin in their folder and copy `./`, so a name is neither an option
nor a pattern. What is fetched arrives in a private folder, compared with what is here, and whole
files: a hostile half gets no checksums of other files, and finds no link to write through.
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
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import cast

from jlremote.copies.exchange import Complaint, CopyPlace, CopyReport, exchange
from jlremote.copies.names import RemotePath, fetched, sent
from jlremote.copies.staging import settle, staging
from jlremote.errors import JlrError
from jlremote.text import one_line, size_in_words
from jlremote.untrusted import Refused, whole_number

_RSYNC = ("rsync",)
_OPTIONS = (
    *("--recursive", "--links", "--times", "--no-human-readable"),
    "--info=none,progress2,name1,nonreg1,stats2",
)
# `--safe-links` leaves out what leads out of the folder; a part lies in a folder of its own.
_SENDING = ("--safe-links", "--partial-dir=.jlr-part")
_FETCHING = ("--munge-links", "--whole-file")
_PRESERVING = ("--perms", "--chmod=a-st")
_SENDS = (3, 1)  # the first version with these options, here or there
_FETCHES = (3, 4)  # the first that writes nowhere else, whatever the other half says
_VANISHED = 24  # files that were deleted meanwhile
_VERSION = re.compile(r"rsync +version +v?(\d+)\.(\d+)")
_PROGRESS = re.compile(r" *(\d+) +(\d+)% +(\S+) +(\d+:\d\d:\d\d)")
_LEFT_OUT = re.compile(r'ignoring unsafe symlink "(.*)" -> ')
_SKIPPED = re.compile(r'skipping non-regular file "(.*)"')
_FILES = re.compile(r"Number of regular files transferred: (\d+)")
_LITERAL = re.compile(r"Literal data: (\d+)")  # which comes after it
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
# Where nothing more can be written, a part would only take the space that is left.
_COPY = """\
cd -- "$path" 2>/dev/null || exit NOT_SO
"$@"
status=$?
[ "$status" != 11 ] || find . -name .jlr-part -type d -prune -exec rm -rf {} +
exit "$status"
"""
_NOT_THERE = 77
_NOT_SO = 78  # the folder is not as it has to be
# rsync runs it in place of ssh. It gives its streams and the command, each word with a null byte at
# its end, to the socket of jlr's process, and waits until the other half has ended.
_PIPE = """\
import os, socket, sys
words = [os.fsencode(word) + b"\\0" for word in sys.argv[3:]]
with socket.socket(fileno=int(sys.argv[1])) as jlr:
    for one in (0, 1):
        os.set_blocking(one, True)  # rsync expects ssh, which takes either
    message = b"".join(words) + b"\\0"
    jlr.sendall(message[socket.send_fds(jlr, [message], [0, 1, 2]):])
    for one in (0, 1):
        os.close(one)
    jlr.recv(1)
"""
_DONE = 0
_WHOLE = 100  # percent
_PIECE = 128 << 10
_LONGEST_LINE = 16 << 10


def send(
    report: CopyReport,
    place: CopyPlace,
    sources: Sequence[Path],
    into: RemotePath,
    *,
    preserve: bool,
) -> bool:
    """Send a single folder; return `False` if rsync cannot, or if there are several sources."""
    if len(sources) > 1 or not sources[0].is_dir() or not _is_here(_SENDS):
        return False
    begin = (_INTO, into.path, sources[0].resolve().name)
    options = (*_SENDING, *(_PRESERVING if preserve else ()))
    words = (*options, "--", "./", "there:./")
    return _run(report, place, sources[0], begin, words, sent(sources, into)) == _DONE


def fetch(
    report: CopyReport,
    place: CopyPlace,
    sources: Sequence[RemotePath],
    into: Path,
    *,
    preserve: bool,
) -> list[RemotePath]:
    """Fetch the folders among the sources, and return those that rsync has not fetched.

    A pattern, and a folder whose name only the place knows, is left to `tar`.
    """
    left = list(sources)
    if not _is_here(_FETCHES) or (len(left) > 1 and not into.is_dir()):
        return left
    for source in sources:
        target = into / source.name if into.is_dir() else into
        if source.is_pattern or not source.name or (target.exists() and not target.is_dir()):
            continue
        ended = _fetch_folder(report, place, source, target, preserve=preserve)
        if ended == _NOT_THERE:
            break
        if ended == _DONE:
            left.remove(source)
    return left


def _fetch_folder(
    report: CopyReport, place: CopyPlace, source: RemotePath, target: Path, *, preserve: bool
) -> int:
    """Fetch a folder's contents; whole files stay if the copy is interrupted."""
    options = (*_FETCHING, *(_PRESERVING if preserve else ()))
    if target.is_dir():
        options += (f"--compare-dest={target.resolve()}",)
    with staging(target) as private:
        arrived = private / "0"  # which rsync makes, with the mode that it has there
        words = (*options, "--", "there:./", "./0/")
        try:
            what = fetched([source], target)
            ended = _run(report, place, private, (_FROM, source.path), words, what)
        except BaseException:
            with suppress(JlrError, OSError):  # the first failure counts
                settle(arrived, target, report, preserve=preserve)
            raise
        if ended == _DONE:
            settle(arrived, target, report, preserve=preserve)
    return ended


def _is_here(least: tuple[int, int]) -> bool:
    if os.name == "nt" or shutil.which(_RSYNC[0]) is None:
        return False
    printed = subprocess.run((*_RSYNC, "--version"), capture_output=True, text=True, check=False)
    version = _VERSION.search(printed.stdout)
    return version is not None and (int(version[1]), int(version[2])) >= least


def _quoted(word: object) -> str:
    """Quote a word for rsync's `--rsh`, where a doubled quote is a quote."""
    text = str(word).replace("'", "''")
    return f"'{text}'"


def _run(
    report: CopyReport,
    place: CopyPlace,
    local: Path,
    begin: tuple[str, ...],
    words: tuple[str, ...],
    what: str,
) -> int:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RSYNC_")}
    ours, theirs = socket.socketpair()
    helper = (sys.executable, "-I", "-S", "-c", _PIPE, theirs.fileno())
    with theirs:
        rsync = subprocess.Popen(
            (*_RSYNC, *_OPTIONS, f"--rsh={' '.join(map(_quoted, helper))}", *words),
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
        with ours, suppress(BrokenPipeError):
            ended = _connect(place, begin, ours)
    except BaseException:
        rsync.terminate()  # it keeps the part of the file that it was at
        raise
    finally:
        status = rsync.wait()
        listener.join()
    if ended in (_NOT_THERE, _NOT_SO):
        return ended
    if listener.too_much:
        raise JlrError(
            "the host sent more than it had announced, or files grew", hint="copy them again"
        )
    if status not in (0, _VANISHED):
        raise JlrError(f"cannot copy {what}: {listener.complaint.cause(status, '`rsync`')}")
    report.count(listener.size, listener.files)
    return _DONE


def _connect(place: CopyPlace, begin: tuple[str, ...], jlr: socket.socket) -> int | None:
    command, files = _given(jlr)
    if not files:
        return None
    with ExitStack() as stack:
        stdin, stdout, stderr = map(stack.enter_context, files)
        outputs = {"stdout": stdout, "stderr": stderr}

        def take(stream: str, data: bytes) -> None:
            rest = memoryview(data)
            while rest:
                rest = rest[outputs[stream].write(rest) or 0 :]

        pieces = iter(lambda: stdin.read(_PIECE), b"")
        return exchange(place, _other_half(begin, command), pieces, take)


def _other_half(begin: tuple[str, ...], words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that runs `words` in a folder, which shell text with arguments finds."""
    choose, remote, *name = begin
    text = f"{_BEGIN}{choose}{_COPY}"
    for word, status in (("NOT_THERE", _NOT_THERE), ("NOT_SO", _NOT_SO)):
        text = text.replace(word, str(status))
    return ("sh", "-c", text, "sh", remote, *name, *words)


def _given(sender: socket.socket) -> tuple[tuple[str, ...], list[io.FileIO]]:
    """Return the other half's command line, and the streams that `_PIPE` has sent, if any."""
    message, descriptors, _, _ = socket.recv_fds(sender, _PIECE, 3)
    while message and not message.endswith(b"\0\0"):
        message += sender.recv(_PIECE) or b"\0\0"
    modes = ("rb", "wb", "wb")
    files = [io.FileIO(one, mode) for one, mode in zip(descriptors, modes, strict=False)]
    return tuple(map(os.fsdecode, message[:-2].split(b"\0"))), files


class RsyncListener:
    """Reads the output of rsync, with that of the other half, in two threads."""

    def __init__(self, rsync: subprocess.Popen[bytes], report: CopyReport) -> None:
        self.files = self.size = 0
        self.too_much = False
        self.complaint = Complaint()
        self._rsync = rsync
        self._report = report
        self._threads = [threading.Thread(target=run) for run in (self._follow, self._complain)]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def join(self) -> None:
        """Wait until all is read."""
        for thread in self._threads:
            thread.join()

    def _complain(self) -> None:
        with cast("io.BufferedReader", self._rsync.stderr) as stderr:
            while data := stderr.read1(_PIECE):
                self.complaint.add(data)

    def _follow(self) -> None:
        stdout = cast("io.BufferedReader", self._rsync.stdout)
        with io.TextIOWrapper(stdout, "utf-8", "replace", newline=None) as lines:
            while line := lines.readline(_LONGEST_LINE):
                with suppress(Refused):
                    self._take(line)

    def _take(self, line: str) -> None:
        if match := _PROGRESS.match(line):
            done, percent, rate, left = match.groups()
            if whole_number(percent) > _WHOLE:
                self.too_much = True
                self._rsync.terminate()
            size = size_in_words(whole_number(done))
            self._report.advance(f"{size}, {percent}%, {rate}, {left.removeprefix('0:')} left")
        elif match := _LEFT_OUT.match(line):
            link = one_line(match[1])
            self._report.leave_out(f"left out the link `{link}`: it leads out of the folder")
        elif match := _SKIPPED.match(line):
            path = one_line(match[1])
            self._report.leave_out(f"left out `{path}`: it is neither file, folder nor link")
        elif match := _FILES.match(line):
            self.files = whole_number(match[1])
        elif match := _SIZE.match(line):
            self.size = whole_number(match[1])
        elif match := _LITERAL.match(line):
            self.too_much |= whole_number(match[1]) > self.size
