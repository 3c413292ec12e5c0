"""One file, either way: beside its final name first, from where an earlier copy ended."""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
import struct
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.workflow.copies.large_files import LARGE, LargeFiles
from jlremote.workflow.copies.sftp_answers import RemoteFacts, attributes
from jlremote.workflow.copies.sftp_client import (
    CREATE,
    READ,
    TRUNCATE,
    WRITE,
    Answer,
    SftpClient,
    data_of,
    done,
)

# OpenSSH's server takes packets of 256 KiB, heads included.
PIECE = 255 << 10
_UNDER_WAY = 32  # pieces
# A smaller file begins anew rather than to ask how much of it is there.
_RESUMED = 1 << 20
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

Moved = Callable[[int], None]


def part_name(name: str, size: int, modified: int) -> str:
    """Return the name of an unfinished copy, which tells its source's size and time."""
    encoded = os.fsencode(name)
    word = hashlib.sha256(b"%d %d %s" % (size, modified, encoded)).hexdigest()[:12]
    return f".{encoded[:200].decode('utf-8', 'ignore')}.{word}.jlr-part"


def send(
    client: SftpClient, local: Path, remote: str, moved: Moved, large: LargeFiles | None = None
) -> None:
    """Copy a file of this machine to a path there; a `large` one goes as a stream."""
    with local.open("rb", buffering=0) as source:
        facts = os.fstat(source.fileno())
        folder, name = posixpath.split(remote)
        part = posixpath.join(folder, part_name(name, facts.st_size, facts.st_mtime_ns))
        resumed = facts.st_size >= _RESUMED
        handle = client.open(part, WRITE | CREATE | (0 if resumed else TRUNCATE), 0o600)
        at = _size(client, part, facts.st_size) if resumed else 0
        if large is not None and not at and facts.st_size >= LARGE:
            large.send(source.fileno(), part, moved)
            at = _size(client, part, facts.st_size)
        else:
            moved(at)
        source.seek(at)
        under_way: deque[Future[Answer]] = deque()
        while data := source.read(PIECE):
            where = struct.pack(">QI", at, len(data))
            under_way.append(client.ask(6, handle, where, data))
            at += len(data)
            moved(len(data))
            if len(under_way) >= _UNDER_WAY:
                done(under_way.popleft())
        given = attributes(mode=stat.S_IMODE(facts.st_mode), modified=int(facts.st_mtime))
        under_way.append(client.ask(10, handle, given))
        under_way.append(client.ask(4, handle))
        while under_way:
            done(under_way.popleft())
    if at != facts.st_size:
        raise JlrError(f"`{local}` changed while it was copied", hint="copy it again")
    done(client.rename(part, remote))


def fetch(
    client: SftpClient,
    remote: str,
    facts: RemoteFacts,
    local: Path,
    moved: Moved,
    large: LargeFiles | None = None,
) -> None:
    """Copy a file there to a path of this machine, never through a symbolic link of that name.

    A `large` one comes as a stream.
    """
    part = local.with_name(part_name(local.name, facts.size, facts.modified))
    flags = os.O_RDWR | os.O_CREAT | NO_FOLLOW
    with os.fdopen(os.open(part, flags, 0o600), "r+b") as target:
        here = target.seek(0, os.SEEK_END)
        if here > facts.size or here < _RESUMED:
            here = target.seek(0)
            target.truncate()
        if large is not None and not here and facts.size >= LARGE:
            large.fetch(remote, target.fileno(), moved)
            here = target.seek(0, os.SEEK_END)
        else:
            moved(here)
        if here < facts.size:
            handle = client.open(remote, READ)
            try:
                _fetch_rest(client, handle, target.write, here, facts.size, moved)
            finally:
                client.ask(4, handle)
        target.flush()
        if target.tell() != facts.size:
            raise JlrError(f"`{remote}` changed while it was copied", hint="copy it again")
    part.chmod(stat.S_IMODE(facts.mode))
    os.utime(part, (facts.modified, facts.modified))
    part.replace(local)


def _size(client: SftpClient, part: str, most: int) -> int:
    """Return how much of a file is there, nothing if it is more than there is."""
    there = client.facts(part)
    return there.size if there is not None and there.size <= most else 0


def _fetch_rest(
    client: SftpClient,
    handle: bytes,
    write: Callable[[bytes | memoryview], int],
    at: int,
    size: int,
    moved: Moved,
) -> None:
    """Read in order, several pieces under way; the rest of a short one is asked for."""
    under_way: deque[tuple[int, int, Future[Answer]]] = deque()
    asked, piece = at, PIECE
    while asked < size or under_way:
        while asked < size and len(under_way) < _UNDER_WAY:
            count = min(piece, size - asked)
            under_way.append((asked, count, _asked(client, handle, asked, count)))
            asked += count
        begin, count, answer = under_way.popleft()
        while count:
            data = data_of(answer)
            if not data:
                return  # the file is shorter by now
            write(data)
            moved(len(data))
            begin, count = begin + len(data), count - len(data)
            if count:
                piece = min(piece, len(data))  # all that this server reads at once
                answer = _asked(client, handle, begin, count)


def _asked(client: SftpClient, handle: bytes, at: int, count: int) -> Future[Answer]:
    return client.ask(5, handle, struct.pack(">QI", at, count))
