"""Files and folders to a place, as one tar archive that is unpacked there."""

from __future__ import annotations

import os
import posixpath
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jlremote.copies import tar_scripts
from jlremote.copies.exchange import Complaint, CopyPlace, CopyReport, exchange
from jlremote.copies.names import RemotePath, sent
from jlremote.copies.staging import leads_out
from jlremote.errors import NotFound, Usage
from jlremote.laptop import tar_archive


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
        tar_archive.in_large_pieces(_archive(packed, report, preserve=preserve)),
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
        facts, mode = one.facts, one.facts.st_mode & ~0o7000  # without setuid, setgid and sticky
        if stat.S_ISDIR(mode) and (not preserve or one.name.count("/") == 1):
            mode |= 0o700  # only its owner can move it there
        yield tar_archive.header(one.name, mode, facts.st_size, facts.st_mtime, one.lead)
        if stat.S_ISREG(mode):
            for piece in tar_archive.content(one.path, facts.st_size, may_grow=False):
                yield piece
                report.moved(len(piece))
            yield tar_archive.padding(facts.st_size)
    yield tar_archive.header(tar_scripts.WHOLE, stat.S_IFREG | 0o644)
    yield tar_archive.END
