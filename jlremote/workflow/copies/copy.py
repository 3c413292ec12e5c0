"""`jlr cp`: the story of a copy, to a place or from it."""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.link.client.link import ShellCommand
from jlremote.link.wire.protocol import Unproved
from jlremote.runtimes.scripts import sftp
from jlremote.text import one_line, size_in_words
from jlremote.workflow.copies import files, rsync, trees
from jlremote.workflow.copies.large_files import LargeFiles
from jlremote.workflow.copies.names import RemotePath, one_place, parsed
from jlremote.workflow.copies.sftp_client import SftpClient
from jlremote.workflow.copies.trees import TreeCopy
from jlremote.workflow.host.context import Context, Progress
from jlremote.workflow.session.shell import ShellPlace, place_of, recorded, recorded_place

_TELL_SECONDS = 0.1


def copy(sources: Sequence[str], target: str, context: Context, *, recursive: bool) -> None:
    """Copy files, and with `recursive` folders, between this machine and one place.

    Raises:
        Usage: both ends are on this machine, or neither is.
        NotFound: there is no such place or source.
    """
    found, into = [parsed(source) for source in sources], parsed(target)
    remote = [source for source in found if isinstance(source, RemotePath)]
    local = [source for source in found if isinstance(source, Path)]
    if isinstance(into, RemotePath) and not remote:
        with ExitStack() as stack:
            place, client = _reached(into.where, context, stack, recursive=recursive)
            copied = stack.enter_context(_shown(client, context))
            _Sending(copied, place, recursive=recursive).all(local, into)
    elif isinstance(into, Path) and not local:
        with ExitStack() as stack:
            place, client = _reached(one_place(remote), context, stack, recursive=recursive)
            copied = stack.enter_context(_shown(client, context))
            _Fetching(copied, place, recursive=recursive).all(remote, into)
    else:
        raise Usage(
            "one end of a copy is on this machine, and the other on a host",
            hint="`jlr cp FILE SESSION:PATH`, or `jlr cp SESSION:PATH FILE`",
        )


def _reached(
    where: str | None, context: Context, stack: ExitStack, *, recursive: bool
) -> tuple[ShellPlace, SftpClient]:
    """Return a place and a client of its files, which `stack` ends.

    As with `jlr shell`, a session that the link knows to run is not looked at first.
    """
    # Our own server takes many small files at once, and OpenSSH's is faster with a large one.
    server = ShellCommand(sftp.tree_server_argv() if recursive else sftp.server_argv())
    record = recorded(where)
    if record is not None:
        place = recorded_place(record, context)
        with suppress(Unproved):
            return place, _client(place, server, stack, checked=False)
    place = place_of(where, context)
    return place, _client(place, server, stack, checked=True)


def _client(
    place: ShellPlace, server: ShellCommand, stack: ExitStack, *, checked: bool
) -> SftpClient:
    with ExitStack() as begun:
        process = begun.enter_context(place.host.shell(place.served, server, None, checked=checked))
        process.wait_connected()
        client = SftpClient(process)
        client.greet()
        begun.push(lambda failure, *_: client.end() if failure is None else None)
        stack.push(begun.pop_all())
    return client


class _Sending:
    """Copies to a place."""

    def __init__(self, copied: TreeCopy, place: ShellPlace, *, recursive: bool) -> None:
        self._copied = copied
        self._place = place
        self._recursive = recursive

    def all(self, sources: Sequence[Path], into: RemotePath) -> None:
        client = self._copied.client
        path = client.real_path(into.path)
        there = client.facts(path)
        is_folder = there is not None and there.is_folder
        if not is_folder and (len(sources) > 1 or into.path.endswith("/")):
            raise NotFound(f"`{into.where}:{into.path}` is not a folder")
        for source in sources:
            name = source.resolve().name
            self._one(source, posixpath.join(path, name) if is_folder else path)

    def _one(self, source: Path, target: str) -> None:
        if not source.exists():
            raise NotFound(f"there is no file `{source}`")
        if source.is_dir():
            _check(source, recursive=self._recursive)
            trees.make_folder(self._copied.client, target)
            by_rsync = rsync.is_here(fetches=False) and rsync.send_folder(
                self._copied, self._place, source, target
            )
            if not by_rsync:
                trees.send_tree(self._copied, source, target)
        else:
            self._copied.found(source.stat().st_size)
            large = LargeFiles(self._place)
            files.send(self._copied.client, source, target, self._copied.moved, large)


class _Fetching:
    """Copies from a place."""

    def __init__(self, copied: TreeCopy, place: ShellPlace, *, recursive: bool) -> None:
        self._copied = copied
        self._place = place
        self._recursive = recursive

    def all(self, sources: Sequence[RemotePath], into: Path) -> None:
        paths = [path for source in sources for path in self._matching(source)]
        if not into.is_dir() and len(paths) > 1:
            raise NotFound(f"`{into}` is not a folder")
        for path in paths:
            self._one(path, into / posixpath.basename(path) if into.is_dir() else into)

    def _one(self, path: str, target: Path) -> None:
        client = self._copied.client
        facts = client.facts(path)
        if facts is None:
            raise NotFound(f"there is no file `{one_line(path)}` there")
        if facts.is_folder:
            _check(path, recursive=self._recursive)
            target.mkdir(exist_ok=True, mode=0o700)
            by_rsync = rsync.is_here(fetches=True) and rsync.fetch_folder(
                self._copied, self._place, path, target
            )
            if not by_rsync:
                trees.fetch_tree(self._copied, path, target)
        else:
            self._copied.found(facts.size)
            large = LargeFiles(self._place)
            files.fetch(client, path, facts, target, self._copied.moved, large)

    def _matching(self, source: RemotePath) -> list[str]:
        """Return the paths of a source; a name of that spelling comes before a pattern."""
        client = self._copied.client
        begin, *words = source.path.split("/") if source.is_pattern else [source.path]
        if not source.is_pattern or client.facts(source.path) is not None:
            return [client.real_path(source.path)]
        if begin in ("", "~"):
            paths = [client.real_path(begin or "/")]
        else:
            words, paths = [begin, *words], [client.real_path(".")]
        for word in filter(None, words):
            paths = [found for path in paths for found in self._below(path, word)]
        if not paths:
            raise NotFound(f"nothing there matches `{source.path}`")
        return paths

    def _below(self, path: str, word: str) -> list[str]:
        client = self._copied.client
        if not set("*?[") & set(word):
            there = posixpath.join(path, word)
            return [there] if client.facts(there) is not None else []
        facts = client.facts(path)
        if facts is None or not facts.is_folder:
            return []
        hidden = word.startswith(".")
        return [
            posixpath.join(path, name)
            for name, _ in client.names(path)
            if fnmatchcase(name, word) and (hidden or not name.startswith("."))
        ]


def _check(path: object, *, recursive: bool) -> None:
    if not recursive:
        raise Usage(f"`{path}` is a folder", hint="`-r` copies it with all that is in it")


@contextmanager
def _shown(client: SftpClient, context: Context) -> Iterator[TreeCopy]:
    """Show how far a copy is: bytes, rate and the time left."""
    told = _Told(context.progress)
    with context.progress.step("Copy"):
        try:
            tell = context.progress
            yield TreeCopy(client, told.found, told.moved, tell.advance, tell.note)
        except OSError as failure:
            where = f"`{failure.filename}`: " if failure.filename else ""
            raise JlrError(f"{where}{failure.strerror or failure}") from failure
    files_word = "file" if told.files == 1 else "files"
    context.progress.note(f"copied {told.files} {files_word}, {size_in_words(told.total)}")


class _Told:
    """Counts what a copy has found and moved, in several threads."""

    def __init__(self, progress: Progress) -> None:
        self.files = self.total = 0
        self._progress = progress
        self._done = 0
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._shown = 0.0

    def found(self, size: int, files: int = 1) -> None:
        with self._lock:
            self.files += files
            self.total += size

    def moved(self, count: int) -> None:
        with self._lock:
            self._done += count
            now = time.monotonic()
            if now - self._shown < _TELL_SECONDS:
                return
            self._shown = now
            rate = self._done / max(now - self._began, _TELL_SECONDS)
            left = (self.total - self._done) / max(rate, 1)
            text = f"{size_in_words(self._done)} of {size_in_words(self.total)}"
            text += f", {size_in_words(int(rate))}/s, {left:.0f} s left"
        self._progress.advance(text)
