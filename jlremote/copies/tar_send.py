"""Files and folders to a place, as one tar archive that is unpacked there."""

from __future__ import annotations

import os
import posixpath
import secrets
import stat
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jlremote.copies import tar_scripts
from jlremote.copies.exchange import Complaint, CopyPlace, CopyReport, exchange
from jlremote.copies.names import RemotePath, sent
from jlremote.copies.staging import leads_out
from jlremote.errors import JlrError, NotFound, Usage
from jlremote.text import one_line

_PIECE = 256 << 10


def check_sources(sources: Sequence[Path], *, recursive: bool) -> None:
    """Check that there is what is to be sent.

    Raises:
        NotFound: a source is missing.
        Usage: a source is a folder.
    """
    for source in sources:
        if not source.exists():
            raise NotFound(f"there is no file `{source}`")
        if source.is_dir() and not recursive:
            raise Usage(f"`{source}` is a folder", hint="`-r` copies it with all that is in it")


def send(
    report: CopyReport,
    place: CopyPlace,
    sources: Sequence[Path],
    into: RemotePath,
    *,
    preserve: bool,
) -> None:
    """Copy into a folder there, or to the new name of the one file or folder.

    Raises:
        NotFound: the target is no folder and has to be one.
    """
    names = [source.resolve().name for source in sources]
    packed = [one for source in sources for one in _below(source, report)]
    argv = tar_scripts.send(
        into.path,
        names,
        f".jlr-{secrets.token_hex(6)}.part",
        "several" if len(sources) > 1 else "folder" if sources[0].is_dir() else "file",
        preserve=preserve,
    )
    streams = {"stdout": Complaint(), "stderr": Complaint()}
    status = exchange(
        place,
        argv,
        _joined(_archive(packed, report, preserve=preserve)),
        lambda stream, data: streams[stream].add(data),
    )
    if status == tar_scripts.NOT_SO:
        raise NotFound(f"`{into.where}:{into.path}` is not a folder")
    if status == tar_scripts.NO_FOLDER:
        raise NotFound(f"there is no folder for `{into.where}:{into.path}`")
    tar_scripts.check(status, streams["stderr"], sent(sources, into))
    if streams["stdout"].lines != [tar_scripts.LANDED]:
        raise EOFError("it did not say that the copy has arrived")


@dataclass(frozen=True)
class _Packed:
    path: Path
    name: str
    facts: os.stat_result
    lead: str = ""  # of a link


def _below(source: Path, report: CopyReport) -> Iterator[_Packed]:
    """Yield a source and what is in it, without what is neither file, folder nor inner link."""
    top = posixpath.join(tar_scripts.FILES, source.resolve().name)
    waiting = [_Packed(source, top, source.stat())]
    while waiting:
        one = waiting.pop()
        if stat.S_ISLNK(one.facts.st_mode):
            if leads_out(one.lead, one.path.parent, source):
                report.leave_out(f"left out the link `{one.path}`: it leads out of the folder")
                continue
        elif stat.S_ISREG(one.facts.st_mode):
            report.count(one.facts.st_size)
        elif stat.S_ISDIR(one.facts.st_mode):
            waiting += [
                _packed(path, one.name) for path in sorted(one.path.iterdir(), reverse=True)
            ]
        else:
            report.leave_out(f"left out `{one.path}`: it is neither file, folder nor link")
            continue
        yield one


def _packed(path: Path, folder: str) -> _Packed:
    facts = path.lstat()
    lead = ""
    if stat.S_ISLNK(facts.st_mode):
        lead = os.readlink(path)  # noqa: PTH115 - a Path is not that text
    return _Packed(path, posixpath.join(folder, path.name), facts, lead)


def _archive(packed: Sequence[_Packed], report: CopyReport, *, preserve: bool) -> Iterator[bytes]:
    for one in packed:
        if stat.S_ISREG(one.facts.st_mode):
            yield from _file(one, report)
        else:
            yield _head(one, preserve=preserve)
    yield tarfile.TarInfo(tar_scripts.WHOLE).tobuf()
    yield bytes(2 * tarfile.BLOCKSIZE)


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces: each one that is given costs a message."""
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        if len(waiting) >= _PIECE:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


def _head(one: _Packed, *, preserve: bool = True) -> bytes:
    member = tarfile.TarInfo(one.name)
    member.mode = one.facts.st_mode & 0o777  # without setuid, setgid and sticky
    member.mtime = int(one.facts.st_mtime)
    if stat.S_ISLNK(one.facts.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, one.lead
    elif stat.S_ISDIR(one.facts.st_mode):
        member.type = tarfile.DIRTYPE
        if not preserve or one.name.count("/") == 1:  # only its owner can move it there
            member.mode |= 0o700
    else:
        member.size = one.facts.st_size
    return member.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _file(one: _Packed, report: CopyReport) -> Iterator[bytes]:
    with one.path.open("rb", buffering=0) as source:
        yield _head(one)
        left = one.facts.st_size
        while left and (data := source.read(min(left, _PIECE))):
            yield data
            report.moved(len(data))
            left -= len(data)
        if left or os.fstat(source.fileno()).st_size != one.facts.st_size:
            raise JlrError(
                f"`{one_line(str(one.path))}` changed while it was copied", hint="copy it again"
            )
    yield bytes(-one.facts.st_size % tarfile.BLOCKSIZE)
