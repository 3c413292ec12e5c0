"""Files and folders from a place, as tar archives one after the other, read by `tarfile`.

Before them comes the list of what they are, and each is checked against what the person typed:
that, and no name in an archive, decides on the name here.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import struct
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from jlremote.copies import tar_scripts
from jlremote.copies.exchange import Complaint, CopyPlace, CopyReport, FarOutput
from jlremote.copies.names import RemotePath
from jlremote.copies.staging import UNUSABLE, settle, staging
from jlremote.errors import JlrError, NotFound, Usage
from jlremote.text import one_line, reason_of, size_in_words
from jlremote.untrusted import Refused, fits_here, path_part, whole_number

_PIECE = 1 << 20
# What the kinds of `tar` say of sockets: the others of what is no file they pack.
_SOCKET = re.compile(r": (socket ignored|.*cannot archive sockets)\Z")
_LONGEST_WORD = 64 << 10
_MOST_FOUND = 1_000_000
_DEEPEST = 200
_ZEROS = bytes(tarfile.BLOCKSIZE)
# What follows the end of an archive: GNU tar fills 10 KiB, or what `TAPE` and `-b` have it fill.
_MOST_ZEROS = 1 << 20


@dataclass(frozen=True)
class Match:
    """A file or folder of the place that a source names."""

    source: RemotePath
    is_folder: bool
    size: int  # of a folder, about
    name: str  # here, empty if the person typed none: then what is in it is copied


def fetch(
    report: CopyReport,
    place: CopyPlace,
    sources: Sequence[RemotePath],
    into: Path,
    *,
    recursive: bool,
    preserve: bool,
) -> None:
    """Copy to `into`, a folder or new name (`NotFound`; `JlrError`: what was not asked for)."""
    argv = tar_scripts.fetch([one.path for one in sources], recursive=recursive)
    complaint, arrived = Complaint(), list[tuple[Match, Path]]()
    with staging(into) as folder:
        with place.process(argv) as process:
            process.send(b"")
            stream = ForwardReader(io.BufferedReader(FarOutput(process, complaint), _PIECE))
            try:
                matches = list(_listed(stream, sources))
                _check(matches, sources, into, recursive=recursive)
                arrived.extend(_received(stream, matches, folder, report, preserve=preserve))
            except EOFError:
                if not process.status:  # else its complaint tells more
                    raise
        assert process.status is not None
        for match, at in arrived:
            if match.is_folder or not process.status:  # after an error, only what is in folders
                target = into / match.name if into.is_dir() else into
                settle(at, target, report, preserve=preserve)
    tar_scripts.check(process.status, complaint, sources, into)
    for line in filter(_SOCKET.search, complaint.lines):
        report.leave_out(f"left out what is no file: {line}")


def _received(
    stream: ForwardReader,
    matches: Sequence[Match],
    folder: Path,
    report: CopyReport,
    *,
    preserve: bool,
) -> Iterator[tuple[Match, Path]]:
    """Read all that the other side sends into a folder, as `0`, `1` and so on."""
    report.expect(sum(match.size for match in matches))
    for number, match in enumerate(matches):
        archive = Archive(stream, folder / str(number), report, preserve=preserve)
        if archive.tree() if match.is_folder else archive.one_file(match.source):
            yield match, folder / str(number)
        stream.skip_zeros()
    if stream.read(1):
        raise Refused("it sends more than was asked for")


def _check(
    matches: Sequence[Match], sources: Sequence[RemotePath], into: Path, *, recursive: bool
) -> None:
    for source in sources:
        of_source = [one for one in matches if one.source is source]
        if not of_source:
            what = "nothing matches" if source.is_pattern else "there is no file"
            raise NotFound(f"{what} `{source}`")
        if len(of_source) > 1 and not source.is_pattern:
            raise Refused(f"`{source.path}` came {len(of_source)} times")
    for one in matches:
        if one.is_folder and not recursive:
            hint = "`-r` copies it with all that is in it"
            raise Usage(f"`{one.source.path}` is a folder", hint=hint)
        if into.is_dir() and not fits_here(one.name):
            message = f"no file on Windows can be called `{one_line(one.name)}`"
            raise Usage(message, hint=f"name the copy: `jlr cp {one.source} NAME`")
    if len(matches) > 1 and not into.is_dir():
        raise NotFound(f"`{into}` is not a folder")


def _listed(stream: ForwardReader, sources: Sequence[RemotePath]) -> Iterator[Match]:
    for _ in range(_MOST_FOUND):
        words = stream.until_null().split(" ", 3)
        if words == [""]:
            return
        if len(words) < 4 or words[0] not in ("d", "f", "!"):
            raise Refused(f"`{one_line(' '.join(words))}` instead of a file's kind and name")
        kind, number, size, path = words
        source = sources[whole_number(number, most=len(sources) - 1)]
        if kind == "!":
            raise JlrError(f"cannot look for `{source}`: {one_line(path)}")
        yield Match(source, kind == "d", 1024 * whole_number(size or "0"), source.name_of(path))
    raise Refused(f"it has more than {_MOST_FOUND} files")


class ForwardReader:
    """A stream for `tarfile`, which reads only forward and no more than needed."""

    def __init__(self, source: io.BufferedReader) -> None:
        self._source = source
        self._at = 0
        self._last = b""

    def tell(self) -> int:
        return self._at

    def seek(self, position: int, _whence: int = 0) -> int:
        while self._at < position:
            if not self.read(min(position - self._at, _PIECE)):
                break
        if self._at != position:
            raise EOFError("it ends in the middle of an archive")
        return position

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _PIECE:
            raise tarfile.ReadError("a header of many megabytes")
        self._last = self._source.read(size)
        self._at += len(self._last)
        return self._last

    def until_null(self) -> str:
        """Return the text before the next null byte."""
        text = bytearray()
        while (byte := self.read(1)) != b"\0":
            if not byte:
                raise EOFError("it sends no list of files")
            text += byte
            if len(text) > _LONGEST_WORD:
                raise Refused("a name of many kilobytes")
        return os.fsdecode(bytes(text))

    def skip_zeros(self) -> None:
        """Skip the zeros at the end of an archive; `tarfile` has read one block of them.

        It takes a broken header and a missing one for an end, too.
        """
        if self._last != _ZEROS:
            raise EOFError("it ends in the middle of an archive")
        for _ in range(_MOST_ZEROS // tarfile.BLOCKSIZE):
            ahead = self._source.peek(1)
            if not ahead or ahead[:1] != b"\0":
                return
            if self.read(tarfile.BLOCKSIZE) != _ZEROS:
                break
        raise Refused("something follows the end of an archive")


class Archive:
    """One archive of a stream, unpacked at a path of a private folder."""

    def __init__(
        self, stream: ForwardReader, at: Path, report: CopyReport, *, preserve: bool
    ) -> None:
        self._at, self._report, self._preserve = at, report, preserve
        with _headers():
            self._archive = tarfile.TarFile(
                fileobj=cast("IO[bytes]", stream), encoding="utf-8", errors="surrogateescape"
            )

    def one_file(self, source: RemotePath) -> bool:
        """Unpack the only file, whatever its name is; return whether it is a regular file."""
        for number, member in enumerate(self._members()):
            if number or member.isdir() or member.issym() or member.islnk():
                raise Refused(f"it sends more than the file `{source.path}`")
            if member.isreg():
                self._write(member, self._at)
            else:
                self._leave_out(source.path)
                return False
        if not self._at.exists():
            raise EOFError(f"it does not send `{source.path}`")
        return True

    def tree(self) -> bool:
        """Unpack a folder."""
        self._at.mkdir(mode=0o700)
        after: list[tuple[Path, tarfile.TarInfo]] = []
        for member in self._members():
            parts = _parts(member.name)
            shown = one_line("/".join(parts))
            if not all(map(fits_here, parts)):
                self._report.leave_out(f"left out `{shown}`: no file on Windows can have this name")
                continue
            path = self._at.joinpath(*parts)
            if member.isdir():
                after.append((path, member))
            if not parts:
                continue
            try:
                self._take(member, path, shown)
            except FileExistsError as error:
                raise Refused(f"it sends `{shown}` twice") from error
            except (FileNotFoundError, NotADirectoryError) as error:
                raise Refused(f"it sends `{shown}` and not its folder") from error
        for path, member in reversed(after):
            path.chmod(member.mode & 0o777)
            _set_time(path, member)
        return True

    def _take(self, member: tarfile.TarInfo, path: Path, shown: str) -> None:
        if member.isdir():
            path.mkdir(mode=0o700)
        elif member.issym():
            path.symlink_to(UNUSABLE + member.linkname)  # `settle` judges where it leads
        elif member.islnk():
            other = self._at.joinpath(*_parts(member.linkname))
            if other.is_symlink() or not other.is_file():
                raise Refused(f"it sends `{shown}` as another name of what is no file")
            os.link(other, path)
        elif member.isreg():
            self._write(member, path)
        else:
            self._leave_out(shown)

    def _write(self, member: tarfile.TarInfo, path: Path) -> None:
        free = shutil.disk_usage(path.parent).free
        shown, top = one_line(member.name).removeprefix("./"), self._at.parent.parent
        if member.size > free:
            needs = f"{size_in_words(member.size)} needs more than {size_in_words(free)}"
            raise JlrError(f"no space is left in `{top}` for `{shown}`: {needs}")
        self._report.count(member.size)
        source = self._archive.extractfile(member)
        assert source is not None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        mode = member.mode & 0o777  # without setuid, setgid and sticky; the system applies umask
        with os.fdopen(os.open(path, flags, mode), "wb") as target:
            while data := source.read(_PIECE):
                try:
                    target.write(data)
                except OSError as failure:
                    where = f"`{shown}` in `{top}`"
                    raise JlrError(f"cannot write {where}: {reason_of(failure)}") from failure
                self._report.moved(len(data))
        if self._preserve:
            path.chmod(mode)
        _set_time(path, member)

    def _leave_out(self, shown: str) -> None:
        self._report.leave_out(f"left out `{shown}`: it is neither file, folder nor link")

    def _members(self) -> Iterator[tarfile.TarInfo]:
        while True:
            with _headers():
                member = self._archive.next()
            if member is None:
                return
            self._archive.members.clear()  # type: ignore[attr-defined]  # grows with every file
            if "\0" in member.name + member.linkname:
                raise Refused(f"`{one_line(member.name)}` is not the name of a file")
            yield member


@contextmanager
def _headers() -> Iterator[None]:
    """Raise errors of `tarfile` over a senseless header as its own error."""
    try:
        yield
    except (ValueError, ArithmeticError, LookupError, struct.error, RecursionError) as error:
        raise tarfile.ReadError("a header makes no sense") from error


def _parts(name: str) -> list[str]:
    parts = name.split("/")
    if parts[0] == ".":
        parts = parts[1:]
    if len(parts) > _DEEPEST:
        raise Refused(f"it nests folders {len(parts)} deep")
    return [path_part(part) for part in parts]


def _set_time(path: Path, member: tarfile.TarInfo) -> None:
    with suppress(OSError, OverflowError, ValueError):  # it may be any number
        os.utime(path, (member.mtime, member.mtime))
