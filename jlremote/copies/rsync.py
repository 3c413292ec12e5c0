"""A folder by rsync, where this machine and the other one have it: only what differs is sent.

rsync runs here and starts its other half by `rsync_pipe`, whose streams the link gets. No path is
on its command line: both halves begin in their folder and copy `./`, so a name is neither an option
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
from contextlib import closing, suppress
from pathlib import Path
from typing import cast

from jlremote.copies import rsync_pipe
from jlremote.copies.exchange import Complaint, CopyStreams, Reached, cause
from jlremote.copies.names import RemotePath, fetched, sent
from jlremote.copies.report import CopyReport
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
_DONE = 0
_WHOLE = 100  # percent
_PIECE = 128 << 10
_LONGEST_LINE = 16 << 10


def send(
    report: CopyReport,
    reached: Reached,
    sources: Sequence[Path],
    into: RemotePath,
    *,
    preserve: bool,
) -> bool:
    """Send a single folder; return `False` if there is more to send, or rsync cannot do it."""
    if len(sources) > 1 or not sources[0].is_dir() or not _is_here(_SENDS):
        return False
    there = (_INTO, into.path, sources[0].resolve().name)
    options = (*_SENDING, *(_PRESERVING if preserve else ()))
    words = (*options, "--", "./", "there:./")
    return _run(report, reached, sources[0], there, words, sent(sources, into)) == _DONE


def fetch(
    report: CopyReport,
    reached: Reached,
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
        ended = _fetch_folder(report, reached, source, target, preserve=preserve)
        if ended == _NOT_THERE:
            break
        if ended == _DONE:
            left.remove(source)
    return left


def _fetch_folder(
    report: CopyReport, reached: Reached, source: RemotePath, target: Path, *, preserve: bool
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
            ended = _run(report, reached, private, (_FROM, source.path), words, what)
        except BaseException:
            with suppress(JlrError, OSError):  # the first failure counts
                settle(arrived, target, report, preserve=preserve)
            raise
        if ended == _DONE:
            settle(arrived, target, report, preserve=preserve)
    return ended


def _is_here(least: tuple[int, int]) -> bool:
    """Return whether this machine has an rsync that is new enough."""
    if os.name == "nt" or shutil.which(_RSYNC[0]) is None:
        return False
    told = subprocess.run((*_RSYNC, "--version"), capture_output=True, text=True, check=False)
    found = _VERSION.search(told.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= least


def _quoted(word: object) -> str:
    """Return a word as rsync parts `--rsh`, where a doubled quote is one."""
    text = str(word).replace("'", "''")
    return f"'{text}'"


def _run(
    report: CopyReport,
    reached: Reached,
    local: Path,
    there: tuple[str, ...],
    words: tuple[str, ...],
    what: str,
) -> int:
    """Run both halves and return `_DONE`, or why they have done nothing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RSYNC_")}
    ours, theirs = socket.socketpair()
    helper = (sys.executable, "-I", "-S", rsync_pipe.__file__, theirs.fileno())
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
            command, files = _given(ours)
            if files:
                with closing(CopyStreams(*files)) as streams:
                    ended = reached.run(_other_half(there, command), streams)
    except BaseException:
        rsync.terminate()  # it keeps the part of the file that it was at
        raise
    finally:
        status = rsync.wait()
        complaint = listener.lines()
    if ended in (_NOT_THERE, _NOT_SO):
        return ended
    if listener.too_much:
        raise JlrError(
            "the other side sends more than it has told, or files grew", hint="copy them again"
        )
    if status not in (0, _VANISHED):
        why = cause(complaint[0]) if complaint else f"`rsync` ended with {status}"
        raise JlrError(f"cannot copy {what}: {why}")
    report.found(listener.size, listener.files)
    return _DONE


def _other_half(there: tuple[str, ...], words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that begins it in a folder: shell text, with that one's arguments."""
    choose, remote, *name = there
    text = f"{_BEGIN}{choose}{_COPY}"
    for word, status in (("NOT_THERE", _NOT_THERE), ("NOT_SO", _NOT_SO)):
        text = text.replace(word, str(status))
    return ("sh", "-c", text, "sh", remote, *name, *words)


def _given(sender: socket.socket) -> tuple[tuple[str, ...], list[io.FileIO]]:
    """Return the other half's command line, and its streams, which `rsync_pipe` has sent.

    There are none if rsync ended before.
    """
    if sys.platform == "win32":
        return (), []
    told, descriptors, _, _ = socket.recv_fds(sender, _PIECE, 3)
    while told and not told.endswith(b"\0\0"):
        told += sender.recv(_PIECE) or b"\0\0"
    modes = ("rb", "wb", "wb")
    files = [io.FileIO(one, mode) for one, mode in zip(descriptors, modes, strict=False)]
    return tuple(map(os.fsdecode, told[:-2].split(b"\0"))), files


class RsyncListener:
    """Reads what rsync says, in two threads; words of the other half are among it."""

    def __init__(self, rsync: subprocess.Popen[bytes], report: CopyReport) -> None:
        assert rsync.stdout is not None
        assert rsync.stderr is not None
        self.files = self.size = 0
        self.too_much = False
        self._rsync = rsync
        self._report = report
        self._stdout = rsync.stdout
        self._complaint = Complaint(cast("io.BufferedReader", rsync.stderr).detach())
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def lines(self) -> list[str]:
        """Wait until all is read, and return the lines of the complaint."""
        self._thread.join()
        return self._complaint.lines()

    def _follow(self) -> None:
        with io.TextIOWrapper(
            cast("io.BufferedReader", self._stdout), "utf-8", "replace", newline=None
        ) as lines:
            while line := lines.readline(_LONGEST_LINE):
                with suppress(Refused):
                    self._take(line)

    def _take(self, line: str) -> None:
        if found := _PROGRESS.match(line):
            done, percent, rate, left = found.groups()
            if whole_number(percent) > _WHOLE:
                self.too_much = True
                self._rsync.terminate()
            size = size_in_words(whole_number(done))
            self._report.advance(f"{size}, {percent}%, {rate}, {left} left")
        elif found := _LEFT_OUT.match(line):
            link = one_line(found[1])
            self._report.leave_out(f"left out the link `{link}`: it leads out of the folder")
        elif found := _SKIPPED.match(line):
            path = one_line(found[1])
            self._report.leave_out(f"left out `{path}`: it is neither file, folder nor link")
        elif found := _FILES.match(line):
            self.files = whole_number(found[1])
        elif found := _SIZE.match(line):
            self.size = whole_number(found[1])
        elif found := _LITERAL.match(line):
            self.too_much |= whole_number(found[1]) > self.size
