"""Small files of one folder, many in a request; only our own server takes such requests."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from jlremote.errors import JlrError
from jlremote.workflow.copies.files import NO_FOLLOW, Moved, part_name
from jlremote.workflow.copies.sftp_answers import RemoteFacts
from jlremote.workflow.copies.sftp_client import SftpClient, SmallFile

SMALL = 64 << 10
# A request has this many bytes or one file more, and an answer must be shorter than 256 KiB.
_TOGETHER = 128 << 10
_MOST_FILES = 100

Act = Callable[[], None]
Found = tuple[str, RemoteFacts]
Item = TypeVar("Item")


class Gathered(Generic[Item]):
    """Files that wait until a request is full, or the folder has no more of them."""

    def __init__(self, copy: Callable[[list[Item]], None]) -> None:
        self._copy = copy
        self._items: list[Item] = []
        self._size = 0

    def add(self, item: Item, size: int) -> list[Act]:
        """Add a file; return what copies those before with it, once they are enough."""
        self._items.append(item)
        self._size += size
        is_enough = self._size >= _TOGETHER or len(self._items) >= _MOST_FILES
        return self.rest() if is_enough else []

    def rest(self) -> list[Act]:
        """Return what copies the files that are left."""
        items, self._items, self._size = self._items, [], 0
        return [lambda: self._copy(items)] if items else []


@dataclass(frozen=True)
class Sent:
    """Files of a folder here that go to one there."""

    client: SftpClient
    local: Path
    remote: str
    moved: Moved

    def send(self, names: list[str]) -> None:
        """Send files, in one request unless they have grown."""
        read: list[SmallFile] = []
        size = 0
        for name in names:
            read.append(self._read(name))
            size += len(read[-1].data)
            if size >= _TOGETHER or name == names[-1]:  # they may be larger by now
                self.client.put_files(self.remote, read)
                self.moved(size)
                read, size = [], 0

    def _read(self, name: str) -> SmallFile:
        path = self.local / name
        with path.open("rb", buffering=0) as source:
            facts = os.fstat(source.fileno())
            data = source.read(SMALL + 1) or b""
        if len(data) != facts.st_size:
            raise JlrError(f"`{path}` changed while it was copied", hint="copy it again")
        return SmallFile(name, stat.S_IMODE(facts.st_mode), int(facts.st_mtime), data)


@dataclass(frozen=True)
class Fetched:
    """Files of a folder there that go to one here."""

    client: SftpClient
    remote: str
    local: Path
    moved: Moved

    def fetch(self, files: list[Found]) -> None:
        """Fetch files in one request."""
        asked = [(name, facts.size) for name, facts in files]
        for (name, facts), data in zip(
            files, self.client.get_files(self.remote, asked), strict=True
        ):
            if len(data) != facts.size:
                path = posixpath.join(self.remote, name)
                raise JlrError(f"`{path}` changed while it was copied", hint="copy it again")
            self._write(name, facts, data)
            self.moved(facts.size)

    def _write(self, name: str, facts: RemoteFacts, data: memoryview) -> None:
        part = self.local / part_name(name, facts.size, facts.modified)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_FOLLOW
        with os.fdopen(os.open(part, flags, 0o600), "wb", buffering=0) as target:
            while data:
                data = data[target.write(data) :]
        part.chmod(stat.S_IMODE(facts.mode))
        os.utime(part, (facts.modified, facts.modified))
        part.replace(self.local / name)
