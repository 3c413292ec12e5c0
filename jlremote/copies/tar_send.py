"""Files and folders to a place, as one tar archive that is unpacked there."""

from __future__ import annotations

import os
import posixpath
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from jlremote.copies import tar_scripts
from jlremote.copies.exchange import Complaint, CopyPlace, CopyReport, exchange
from jlremote.copies.local_tree import read_tree
from jlremote.copies.names import RemotePath
from jlremote.errors import NotFound, Usage
from jlremote.laptop import tar_archive

# A path, its name in the archive, what it is, and where a link leads.
_Packed = tuple[Path, str, os.stat_result, str]


def check_sources(sources: Sequence[Path], *, recursive: bool) -> None:
    """Check what is to be sent (`NotFound`: a source is missing, `Usage`: it is a folder)."""
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
    """Copy into a folder there, or to a new name of the one source (`NotFound`: no folder)."""
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
        raise NotFound(f"`{into}` is not a folder")
    if status == tar_scripts.NO_FOLDER:
        raise NotFound(f"there is no folder for `{into}`")
    tar_scripts.check(status, streams["stderr"], sources, into)
    if streams["stdout"].lines != [tar_scripts.LANDED]:
        raise EOFError("it did not say that the copy has arrived")


def _below(source: Path, report: CopyReport) -> Iterator[_Packed]:
    """Yield a source and what is in it, without what is neither file, folder nor inner link."""
    top, facts = posixpath.join(tar_scripts.FILES, source.resolve().name), source.stat()
    yield source, top, facts, ""
    if not stat.S_ISDIR(facts.st_mode):
        report.count(facts.st_size)
        return
    for name, state in read_tree(source, report.leave_out, whole=True).items():
        path = source / name
        facts = path.lstat()
        if stat.S_ISREG(facts.st_mode):
            report.count(facts.st_size)
        yield path, f"{top}/{name}", facts, state[1] if state[0] == "l" else ""


def _archive(packed: Sequence[_Packed], report: CopyReport, *, preserve: bool) -> Iterator[bytes]:
    for path, name, facts, lead in packed:
        mode = facts.st_mode & ~0o7000  # without setuid, setgid and sticky
        if stat.S_ISDIR(mode) and (not preserve or name.count("/") == 1):
            mode |= 0o700  # only its owner can move it there
        yield tar_archive.header(name, mode, facts.st_size, facts.st_mtime, lead)
        if stat.S_ISREG(mode):
            for piece in tar_archive.content(path, facts.st_size, may_grow=False):
                yield piece
                report.moved(len(piece))
            yield tar_archive.padding(facts.st_size)
    yield tar_archive.header(tar_scripts.WHOLE, stat.S_IFREG | 0o644)
    yield tar_archive.END
