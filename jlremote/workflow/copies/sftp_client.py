"""An SFTP client on a process over the link; several threads may use it at once."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from jlremote.errors import JlrError, LinkLost
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.text import one_line
from jlremote.workflow.copies.sftp_answers import (
    ATTRIBUTES,
    DATA,
    EOF,
    EXTENDED_REPLY,
    HANDLE,
    NAME,
    NO_SUCH_FILE,
    OK,
    STATUS,
    Fields,
    RemoteFacts,
    SftpRefused,
    attributes,
    text,
)

READ, WRITE, CREATE, TRUNCATE = 0x01, 0x02, 0x08, 0x10
_MOST_ANSWER = 1 << 20
_COMPLAINT = 500

_HEAD = 5  # the size and the kind
_PUT_FILES, _GET_FILES = b"put-files@jlr", b"get-files@jlr"

Answer = tuple[int, memoryview]


@dataclass(frozen=True)
class SmallFile:
    """A file of one folder, as a whole."""

    name: str
    mode: int
    modified: int  # seconds since the epoch
    data: bytes


class SftpClient:
    """Requests to an SFTP server; those that return a future may be sent one after the other."""

    def __init__(self, process: RemoteProcess) -> None:
        self._process = process
        # The reader must go on while a sender waits: its `taken` messages let that go on.
        self._sending = threading.Lock()
        self._lock = threading.Lock()
        self._extensions: set[bytes] = set()
        self._last = 0
        self._waiting: dict[int, Future[Answer]] = {}
        self._complaint = b""
        self._over: JlrError | None = None
        self._greeting: Future[Answer] = Future()
        threading.Thread(target=self._read, daemon=True).start()

    def greet(self) -> None:
        """Begin.

        Raises:
            JlrError: no SFTP server runs there.
        """
        self._process.give(struct.pack(">IBI", 5, 1, 3))
        _, body = self._greeting.result()
        words = Fields(body[4:])
        while words.left:
            self._extensions.add(words.text())
            words.text()

    def end(self) -> None:
        """End the server."""
        self._process.send(b"")

    def ask(self, kind: int, *fields: bytes) -> Future[Answer]:
        """Send a request."""
        answer: Future[Answer] = Future()
        size = 5 + sum(map(len, fields))
        with self._sending:
            with self._lock:
                if self._over is not None:
                    raise self._over
                self._last += 1
                self._waiting[self._last] = answer
            head = struct.pack(">IBI", size, kind, self._last)
            self._process.give(b"".join((head, *fields)))
        return answer

    def facts(self, path: str, *, follow: bool = True) -> RemoteFacts | None:
        """Return the facts of a path, `None` for none."""
        try:
            return Fields(taken(self.ask(17 if follow else 7, text(path)), ATTRIBUTES)).facts()
        except SftpRefused as refused:
            if refused.code == NO_SUCH_FILE:
                return None
            raise

    def real_path(self, path: str) -> str:
        """Return the absolute path; `~` is the home there."""
        if path == "~" or path.startswith("~/"):
            answer = self.ask(200, text(b"expand-path@openssh.com"), text(path))
        else:
            answer = self.ask(16, text(path))
        fields = Fields(taken(answer, NAME))
        fields.number()
        return os.fsdecode(fields.text())

    def names(self, folder: str) -> list[tuple[str, RemoteFacts]]:
        """Return what is in a folder.

        Raises:
            JlrError: a name leads out of it.
        """
        handle = handle_of(self.ask(11, text(folder)))
        found = []
        try:
            while True:
                fields = Fields(taken(self.ask(12, handle), NAME))
                for _ in range(fields.number()):
                    name = os.fsdecode(fields.text())
                    fields.text()
                    facts = fields.facts()
                    if name not in (".", ".."):
                        found.append((_checked(name, folder), facts))
        except SftpRefused as refused:
            if refused.code != EOF:
                raise
        finally:
            self.ask(4, handle)
        return sorted(found)

    def open(self, path: str, flags: int, mode: int | None = None) -> bytes:
        """Open a file and return its handle as a field."""
        given = struct.pack(">I", flags)
        return handle_of(self.ask(3, text(path), given, attributes(mode=mode)))

    def make_folder(self, path: str) -> None:
        done(self.ask(14, text(path), attributes(mode=0o700)))

    def rename(self, source: str, target: str) -> Future[Answer]:
        """Rename, in place of what has the name."""
        return self.ask(200, text(b"posix-rename@openssh.com"), text(source), text(target))

    def link(self, target: str, path: str) -> None:
        """Make a symbolic link, in place of another one."""
        there = self.facts(path, follow=False)
        if there is not None and there.is_link:
            done(self.ask(13, text(path)))
        done(self.ask(20, text(target), text(path)))

    def target(self, path: str) -> str:
        """Return where a symbolic link leads."""
        fields = Fields(taken(self.ask(19, text(path)), NAME))
        fields.number()
        return os.fsdecode(fields.text())

    @property
    def takes_many(self) -> bool:
        """Whether one request may have many small files, as our own server has it."""
        return {_PUT_FILES, _GET_FILES} <= self._extensions

    def put_files(self, folder: str, files: Sequence[SmallFile]) -> None:
        """Write small files whole."""
        fields = [text(_PUT_FILES), text(folder)]
        for file in files:
            head = struct.pack(">II", file.mode, file.modified)
            fields += (text(file.name), head, struct.pack(">I", len(file.data)), file.data)
        done(self.ask(200, *fields))

    def get_files(self, folder: str, files: Sequence[tuple[str, int]]) -> list[memoryview]:
        """Return the bytes of small files, given by name and size."""
        asked = [text(name) + struct.pack(">I", size) for name, size in files]
        answer = self.ask(200, text(_GET_FILES), text(folder), *asked)
        fields = Fields(taken(answer, EXTENDED_REPLY))
        return [fields.data() for _ in files]

    # In the reader's thread.

    def _read(self) -> None:
        error: JlrError = LinkLost("the copy's connection ended")
        try:
            self._take_packets()
            if said := one_line(self._complaint.decode("utf-8", "replace").strip()):
                error = JlrError(f"no SFTP server runs there: {said}")
        except JlrError as failure:
            error = failure
        with self._lock:
            self._over = error
            waiting, self._waiting = self._waiting, {}
        for answer in (self._greeting, *waiting.values()):
            if not answer.done():
                answer.set_exception(error)
        self._process.leave()

    def _take_packets(self) -> None:
        kept: list[bytes] = []
        there = wanted = 0
        for stream, data in self._process:
            if stream == "stderr":
                self._complaint = (self._complaint + data)[-_COMPLAINT:]
                continue
            kept.append(data)
            there += len(data)
            if there >= max(wanted, _HEAD):  # else joining would copy it again and again
                rest, wanted = self._settle_whole(b"".join(kept))
                kept, there = [rest], len(rest)

    def _settle_whole(self, data: bytes) -> tuple[bytes, int]:
        """Settle the whole packets; return the rest, and how many bytes its packet has."""
        at, end, view = 0, len(data), memoryview(data)
        while end - at >= _HEAD:
            size = int.from_bytes(data[at : at + 4], "big")
            if not 0 < size <= _MOST_ANSWER:
                raise JlrError("the program there is not an SFTP server")
            if end - at < 4 + size:
                return data[at:], 4 + size
            self._settle(data[at + 4], view[at + 5 : at + 4 + size])
            at += 4 + size
        return data[at:], 0

    def _settle(self, kind: int, body: memoryview) -> None:
        if not self._greeting.done():
            self._greeting.set_result((kind, body))
            return
        with self._lock:
            answer = self._waiting.pop(int.from_bytes(body[:4], "big"), None)
        if answer is not None:
            answer.set_result((kind, body[4:]))


def taken(answer: Future[Answer], kind: int) -> memoryview:
    """Return the body of an answer that must be of a kind.

    Raises:
        SftpRefused: the server refused.
    """
    found, body = answer.result()
    if found == STATUS:
        fields = Fields(body)
        code, message = fields.number(), fields.text()
        if code != OK or kind != STATUS:
            raise SftpRefused(code, one_line(message.decode("utf-8", "replace")) or f"error {code}")
    elif found != kind:
        raise JlrError(f"the SFTP server gave an answer of kind {found} and not {kind}")
    return body


def done(answer: Future[Answer]) -> None:
    """Wait for a request that has no other answer than that it was done."""
    taken(answer, STATUS)


def handle_of(answer: Future[Answer]) -> bytes:
    """Return the handle of an answer as a field."""
    return bytes(taken(answer, HANDLE))


def data_of(answer: Future[Answer]) -> bytes | memoryview:
    """Return the bytes of an answer to a read, none at the file's end."""
    try:
        return Fields(taken(answer, DATA)).data()
    except SftpRefused as refused:
        if refused.code == EOF:
            return b""
        raise


def _checked(name: str, folder: str) -> str:
    if not name or "/" in name or "\0" in name:
        raise JlrError(f"the SFTP server names a file `{one_line(name)}` in `{one_line(folder)}`")
    return name
