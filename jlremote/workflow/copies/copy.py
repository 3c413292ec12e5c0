"""`jlr cp`: the story of a copy, to a place or from it."""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.text import one_line, size_in_words
from jlremote.workflow.copies import files, rsync, trees
from jlremote.workflow.copies.large_files import LargeFiles
from jlremote.workflow.copies.names import RemotePath, one_place, parsed
from jlremote.workflow.copies.reached import Reached
from jlremote.workflow.copies.sftp_client import SftpClient
from jlremote.workflow.copies.trees import CopyReport, TreeCopy
from jlremote.workflow.host.context import Context, Progress

_TELL_SECONDS = 0.1


@dataclass(frozen=True)
class Copied:
    """What was copied, and what was left out and why."""

    files: int
    bytes: int
    skipped: tuple[str, ...]


def copy(sources: Sequence[str], target: str, context: Context, *, recursive: bool) -> Copied:
    """Copy files, and with `recursive` folders, between this machine and one place.

    Raises:
        Usage: both ends are on this machine, or neither is.
        NotFound: there is no such place or source.
    """
    found, into = [parsed(source) for source in sources], parsed(target)
    remote = [source for source in found if isinstance(source, RemotePath)]
    local = [source for source in found if isinstance(source, Path)]
    told = _Told(context.progress)
    if isinstance(into, RemotePath) and not remote:
        with _begun(into.where, told, context, recursive=recursive) as begun:
            _Sending(*begun, recursive=recursive).all(local, into)
    elif isinstance(into, Path) and not local:
        with _begun(one_place(remote), told, context, recursive=recursive) as begun:
            _Fetching(*begun, recursive=recursive).all(remote, into)
    else:
        raise Usage(
            "one end of a copy is on this machine, and the other on a host",
            hint="`jlr cp FILE SESSION:PATH`, or `jlr cp SESSION:PATH FILE`",
        )
    return Copied(told.files, told.total, tuple(told.skipped))


class _Copy:
    """Copies by SFTP, or a folder by rsync where that is on both sides."""

    def __init__(self, report: CopyReport, reached: Reached, *, recursive: bool) -> None:
        self._report = report
        self._reached = reached
        self._recursive = recursive
        self._has_rsync = True  # until it is known not to be there

    @property
    def _client(self) -> SftpClient:
        return self._reached.client

    @property
    def _tree(self) -> TreeCopy:
        return TreeCopy(**vars(self._report), client=self._client)

    def _by_rsync(self, act: Callable[[CopyReport, Reached], bool], *, fetches: bool) -> bool:
        """Return whether rsync has done it."""
        if not (self._has_rsync and rsync.is_here(fetches=fetches)):
            return False
        try:
            return act(self._report, self._reached)
        except rsync.NotThere:
            self._has_rsync = False
            return False


class _Sending(_Copy):
    """Copies to a place."""

    def all(self, sources: Sequence[Path], into: RemotePath) -> None:
        if self._is_sent(sources, into):
            return
        path = self._client.real_path(into.path)
        there = self._client.facts(path)
        is_folder = there is not None and there.is_folder
        if not is_folder and (len(sources) > 1 or into.path.endswith("/")):
            raise NotFound(f"`{into.where}:{into.path}` is not a folder")
        for source in sources:
            name = source.resolve().name
            self._one(source, posixpath.join(path, name) if is_folder else path)

    def _is_sent(self, sources: Sequence[Path], into: RemotePath) -> bool:
        """Send one folder without a look at what is there, if rsync's other half finds all well."""
        if not (self._recursive and len(sources) == 1 and sources[0].is_dir()):
            return False
        return self._rsynced(sources[0], into.path, sources[0].resolve().name)

    def _rsynced(self, source: Path, target: str, name: str) -> bool:
        return self._by_rsync(
            lambda report, reached: rsync.send_folder(report, reached, source, target, name),
            fetches=False,
        )

    def _one(self, source: Path, target: str) -> None:
        if not source.exists():
            raise NotFound(f"there is no file `{source}`")
        if source.is_dir():
            _check(source, recursive=self._recursive)
            trees.make_folder(self._client, target)
            if not self._rsynced(source, target, "."):
                trees.send_tree(self._tree, source, target)
        else:
            self._report.found(source.stat().st_size)
            large = LargeFiles(self._reached.place)
            files.send(self._client, source, target, self._report.moved, large)


class _Fetching(_Copy):
    """Copies from a place."""

    def all(self, sources: Sequence[RemotePath], into: Path) -> None:
        if self._is_fetched(sources, into):
            return
        paths = [path for source in sources for path in self._matching(source)]
        if not into.is_dir() and len(paths) > 1:
            raise NotFound(f"`{into}` is not a folder")
        for path in paths:
            self._one(path, into / posixpath.basename(path) if into.is_dir() else into)

    def _is_fetched(self, sources: Sequence[RemotePath], into: Path) -> bool:
        """Fetch one folder without a look at what is there, if rsync's other half finds it."""
        path = sources[0].path.rstrip("/")
        name = posixpath.basename(path)
        if not self._recursive or len(sources) > 1 or sources[0].is_pattern:
            return False
        if name in ("", ".", "..", "~"):  # only the place knows what it is called
            return False
        target = into / name if into.is_dir() else into
        is_new = not target.exists()
        if not (is_new or target.is_dir()):
            return False
        with suppress(FileNotFoundError):  # told by the other way
            return self._rsynced(path, target, is_new=is_new)
        return False

    def _rsynced(self, path: str, target: Path, *, is_new: bool) -> bool:
        target.mkdir(exist_ok=True, mode=0o700)
        is_fetched = False
        try:
            is_fetched = self._by_rsync(
                lambda report, reached: rsync.fetch_folder(report, reached, path, target),
                fetches=True,
            )
        finally:
            if is_new and not is_fetched:
                with suppress(OSError):  # it has the part that has come
                    target.rmdir()
        return is_fetched

    def _one(self, path: str, target: Path) -> None:
        client = self._client
        facts = client.facts(path)
        if facts is None:
            raise NotFound(f"there is no file `{one_line(path)}` there")
        if facts.is_folder:
            _check(path, recursive=self._recursive)
            if not self._rsynced(path, target, is_new=False):
                trees.fetch_tree(self._tree, path, target)
        else:
            self._report.found(facts.size)
            large = LargeFiles(self._reached.place)
            files.fetch(client, path, facts, target, self._report.moved, large)

    def _matching(self, source: RemotePath) -> list[str]:
        """Return the paths of a source; a name of that spelling comes before a pattern."""
        client = self._client
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
        client = self._client
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
def _begun(
    where: str | None, told: _Told, context: Context, *, recursive: bool
) -> Iterator[tuple[CopyReport, Reached]]:
    """Reach a place, and show how far the copy is: bytes, rate and the time left."""
    advance = context.progress.advance
    with ExitStack() as stack, context.progress.step("Copy"):
        try:
            reached = Reached(where, context, stack, recursive=recursive)
            yield CopyReport(told.found, told.moved, advance, told.leave_out), reached
        except OSError as failure:
            where = f"`{failure.filename}`: " if failure.filename else ""
            raise JlrError(f"{where}{failure.strerror or failure}") from failure
    files_word = "file" if told.files == 1 else "files"
    context.progress.note(f"copied {told.files} {files_word}, {size_in_words(told.total)}")


class _Told:
    """Counts what a copy has found and moved, in several threads."""

    def __init__(self, progress: Progress) -> None:
        self.files = self.total = 0
        self.skipped: list[str] = []
        self._progress = progress
        self._done = 0
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._shown = 0.0

    def found(self, size: int, files: int = 1) -> None:
        with self._lock:
            self.files += files
            self.total += size

    def leave_out(self, why: str) -> None:
        self.skipped.append(why)
        self._progress.note(why)

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
