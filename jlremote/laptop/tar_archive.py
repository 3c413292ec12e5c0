"""Tar archives of this machine's files, written in pieces and without a file of their own."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.text import one_line

PIECE_BYTES = 512 << 10
END = bytes(2 * tarfile.BLOCKSIZE)
_TYPES = {stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFLNK: tarfile.SYMTYPE}
_TYPES |= {stat.S_IFIFO: tarfile.FIFOTYPE}


def header(name: str, mode: int, size: int = 0, seconds: float = 0, link: str = "") -> bytes:
    """Return the header of a member that belongs to root.

    `mode` has the type, too, `seconds` is when it was changed, and `link` the text of a link.
    """
    info = tarfile.TarInfo(name)
    info.type = _TYPES.get(stat.S_IFMT(mode), tarfile.REGTYPE)
    info.mode, info.mtime, info.linkname = stat.S_IMODE(mode), int(seconds), link
    info.size = size if info.isreg() else 0
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def content(path: Path, size: int, *, may_grow: bool) -> Iterator[bytes]:
    """Yield `size` bytes of a file, before its `padding` (`JlrError`: it changed, or `OSError`)."""
    with path.open("rb", buffering=0) as file:
        left = size
        while left and (data := file.read(min(left, PIECE_BYTES))):
            yield data
            left -= len(data)
        if left or (not may_grow and os.fstat(file.fileno()).st_size != size):
            changed = f"`{one_line(str(path))}` changed while it was copied"
            raise JlrError(changed, hint="run the command again")


def padding(size: int) -> bytes:
    """Return what fills up the last block of so many bytes."""
    return bytes(-size % tarfile.BLOCKSIZE)


def in_large_pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Join small blocks: each piece is a message to the link."""
    held = bytearray()
    for block in blocks:
        if held and len(held) + len(block) > PIECE_BYTES:
            yield bytes(held)
            held.clear()
        held += block
    yield bytes(held)
