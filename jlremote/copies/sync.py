"""`jlr sync`: make a folder there like one of this machine, one way, whole files only.

`jlr sync --watch` does it again at each change.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from threading import Event
from typing import Any

from jlremote.copies.exchange import (
    Complaint,
    CopyPlace,
    CopyReport,
    exchange,
    in_words,
    plain_errors,
)
from jlremote.copies.local_tree import NEVER, read_tree
from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.laptop import tar_archive
from jlremote.remote import synced_folder
from jlremote.remote.sending import NO_PYTHON, OLDEST, PYTHON, program
from jlremote.remote.synced_folder import State
from jlremote.text import listed, one_line
from jlremote.untrusted import Refused, absolute_path, document

_QUIET_MS = 50  # without a change, before what has changed is sent
_MOST_MS = 300  # that changes are collected
_LOOK_MS = 500
_AGAIN_SECONDS = 5.0  # after a failure
_ROUNDS = 3  # for files that change while they are read
_MOST_ANSWER = 64 << 20
_MOST_NAMED = 10
_LISTS = ("sent", "deleted", "kept", "conflicts")


@dataclass(frozen=True)
class SyncRequest:
    """`jlr sync [LOCAL] SESSION[:DIR]`."""

    local: Path
    where: str | None  # a session, `HOST/CONTAINER` or `HOST`; the latest session by default
    # The folder there, relative to the one in which shells begin. `None` is that one itself, or,
    # where that is `/` or the home folder, one in it with the name of `local`.
    into: str | None = None
    overwrite: bool = False  # whether files that differ and were not brought are replaced
    dry: bool = False  # whether it is only told what would be done

    @property
    def place(self) -> str:
        return (self.where or "the latest session") + (f":{self.into}" if self.into else "")


@dataclass(frozen=True)
class Synced:
    """What was done, or with a dry run would be: names of files and links."""

    into: str  # the folder there
    sent: tuple[str, ...]
    bytes: int
    deleted: tuple[str, ...]
    kept: tuple[str, ...]  # what changed there, and not here
    conflicts: tuple[str, ...]  # what differs, and was not replaced
    skipped: tuple[str, ...]  # what of this folder was left out, and why
    before: str  # the other folder that was brought there before, empty for none


def sync(request: SyncRequest, context: Context) -> Synced:
    """Send what differs, and delete there what an earlier sync brought and is gone here.

    Raise `Usage` if one of the folders is `/` or a home folder; `NotFound` if there is no such
    folder or place, or no Python there; `Busy` if another sync has the folder there; `JlrError` if
    files were not replaced, because they had changed there as well.
    """
    local = request.local.resolve()
    if not local.is_dir():
        raise NotFound(f"there is no folder `{request.local}`")
    if local in (Path.home().resolve(), Path(local.anchor)):
        what = f"`{local}` is your home folder, or all of this machine"
        raise Usage(what, hint="name a project's folder, or call `jlr` in one")
    with context.progress.step(f"Sync to {request.place}"):
        result = exchanged(request, CopyReport(context.progress), CopyPlace(request.where, context))
    _tell(request, result, context)
    return result


def sync_all(request: SyncRequest, context: Context) -> str:
    """Sync, and return the folder there; a `JlrError` names what was not replaced."""
    done = sync(request, context)
    check_conflicts(request, done)
    return done.into


def exchanged(request: SyncRequest, report: CopyReport, place: CopyPlace) -> Synced:
    """Do what `sync` does, and tell nothing but what is left out."""
    with plain_errors():
        done, changing = _Round(request, report, place).run()
        for _ in range(_ROUNDS - 1):
            if changing:
                earlier, (done, changing) = done, _Round(request, report, place).run()
                done |= {acts: earlier[acts] + done[acts] for acts in ("sent", "deleted")}
    for name in changing:
        report.leave_out(f"did not send `{one_line(name)}`: it changes all the time")
    lists = {name: tuple(map(str, done[name])) for name in _LISTS}
    skipped, before = tuple(report.skipped), str(done.get("before") or "")
    return Synced(done["into"], bytes=report.total, skipped=skipped, before=before, **lists)


def check_conflicts(request: SyncRequest, result: Synced) -> None:
    """Raise a `JlrError` that names what was not replaced, if anything was not."""
    if result.conflicts:
        files = f"{len(result.conflicts)} files" if len(result.conflicts) > 1 else "one file"
        target = f"{request.where or ''}:{request.into or ''}".removesuffix(":")
        line = shlex.join(("jlr", "sync", str(request.local), *filter(None, (target,))))
        raise JlrError(
            f"{files} in `{request.place}` changed there, or were there before, and differ from "
            f"those here: {_named(result.conflicts)}",
            hint=f"`{line} --overwrite` replaces them",
        )


def _tell(request: SyncRequest, result: Synced, context: Context) -> None:
    note = context.progress.note
    if result.before and (result.kept or result.conflicts):
        note(f"`{one_line(result.before)}` was synced into this folder before")
    if result.kept:
        note(f"kept what changed there: {_named(result.kept)}")
    if not request.dry:
        deleted = f", deleted {len(result.deleted)}" if result.deleted else ""
        sent = in_words(len(result.sent), result.bytes)
        note(f"sent {sent}{deleted}, in `{one_line(result.into)}`")


def _named(names: tuple[str, ...]) -> str:
    return listed([f"`{one_line(name)}`" for name in names], _MOST_NAMED)


def watch(request: SyncRequest, context: Context) -> None:
    """Sync at each change of the folder, until Ctrl-C; what failed is tried again."""
    from watchfiles import watch as changes  # loads slowly

    report, place = CopyReport(context.progress), CopyPlace(request.where, context)
    report.advance = lambda _: None  # no step is open
    due: float | None = 0.0  # what was saved before the watch began
    trouble = ""  # one that lasts is told once
    try:
        for changed in changes(
            request.local,
            watch_filter=lambda _, path: not set(PurePath(path).parts) & set(NEVER),
            debounce=_MOST_MS,
            step=_QUIET_MS,
            rust_timeout=_LOOK_MS,
            yield_on_timeout=True,
        ):
            if changed or (due is not None and time.monotonic() >= due):
                told = _synced_again(request, report, place, context)
                if told and told != trouble:
                    context.progress.note(told)
                trouble, due = told, time.monotonic() + _AGAIN_SECONDS if told else None
    except OSError as failure:
        why = str(failure).partition(". about ")[0]  # as where inotify reached its limit
        more = "`sudo sysctl fs.inotify.max_user_watches=1000000` lets it watch more folders"
        raise JlrError(f"cannot watch `{request.local}`: {why}", hint=more) from failure


def _synced_again(
    request: SyncRequest, report: CopyReport, place: CopyPlace, context: Context
) -> str:
    """Sync, tell what was done, and return what went wrong."""
    try:
        done = exchanged(request, report, place)
        for act, names in (("sent", done.sent), ("deleted", done.deleted)):
            if names:
                context.progress.note(f"{act} {_named(names)}")
        check_conflicts(request, done)
    except JlrError as failure:
        return "; ".join(filter(None, (failure.message, failure.hint)))
    return ""


def _length(size: int) -> bytes:
    return str(size).zfill(synced_folder.SIZE_DIGITS).encode()


@dataclass
class _Round:
    """One exchange with the far end: the list, what it wants, the files, and what it has done."""

    request: SyncRequest
    report: CopyReport
    place: CopyPlace
    _there: dict[str, State] = field(default_factory=dict)
    _complaint: Complaint = field(default_factory=Complaint)
    _printed: bytearray = field(default_factory=bytearray)
    _last: dict[str, Any] = field(default_factory=dict)  # the last answer
    _wanted: list[str] = field(default_factory=list)
    _decided: Event = field(default_factory=Event)  # what is wanted, or that it ended before
    _changed: list[str] = field(default_factory=list)

    def run(self) -> tuple[dict[str, Any], list[str]]:
        """Return the last answer, and the names of files that changed while they were read."""
        argv = (*PYTHON, "-ISc", program(synced_folder.__name__))
        try:
            status = exchange(self.place, argv, self._given(), self._take)
        finally:
            self._decided.set()
        self._check(status)
        if not all(isinstance(self._last.get(name), list) for name in _LISTS):
            raise EOFError("it did not say what it has done")
        absolute_path(str(self._last.get("into")))
        return self._last, self._changed

    def _check(self, status: int) -> None:
        place, name = self.request.place, self.request.local.resolve().name
        if status == NO_PYTHON:
            target = place if self.request.into else f"{place}:"
            line = shlex.join(("jlr", "cp", "-r", str(self.request.local), target))
            what = f"`jlr sync` needs Python {'.'.join(map(str, OLDEST))} or later in `{place}`"
            raise NotFound(what, hint=f"`{line}` copies all of the folder with the `tar` there")
        if status == synced_folder.BUSY:
            raise Busy(f"another sync writes into `{place}`", hint="wait until it has ended")
        if status == synced_folder.REFUSED:
            hint = f"name a folder in it, as `{self.request.where or 'SESSION'}:{name}`"
            raise Usage(f"`{place}` is `/` or the home folder there", hint=hint)
        if status == synced_folder.EMPTY:
            raise JlrError(
                f"`{self.request.local}` is empty, and all that was brought would be deleted there",
                hint="look whether it is the right folder; `rm` there deletes what you name",
            )
        if status:
            raise JlrError(f"cannot sync to `{place}`: {self._complaint.cause(status)}")

    def _given(self) -> Iterator[bytes]:
        self._there.update(read_tree(self.request.local.resolve(), self.report.leave_out))
        words = {
            "into": self.request.into,
            "name": self.request.local.resolve().name,
            "source": f"{platform.node()}:{self.request.local.resolve()}",
            "overwrite": self.request.overwrite,
            "dry": self.request.dry,
            "entries": list(self._there.items()),
        }
        packed = zlib.compress(json.dumps(words).encode("ascii"), 1)
        given, size = _length(len(packed)) + packed, tar_archive.PIECE_BYTES
        yield from (given[at : at + size] for at in range(0, len(given), size))
        self._decided.wait()
        if self._wanted:
            yield from tar_archive.in_large_pieces(self._files())

    def _files(self) -> Iterator[bytes]:
        self.report.expect(sum(self._there[name][1] for name in self._wanted))
        for name in self._wanted:
            yield from self._file(name, self._there[name])
        ended = json.dumps(self._changed).encode()
        yield _length(len(ended)) + ended

    def _file(self, name: str, state: State) -> Iterator[bytes]:
        try:
            file = (self.request.local / name).open("rb", buffering=0)
        except FileNotFoundError:  # a moment ago
            self._changed.append(name)
            yield _length(0)
            return
        left = state[1]
        yield _length(left)
        with file:
            while left:
                piece = file.read(min(left, tar_archive.PIECE_BYTES))
                piece = piece or bytes(min(left, tar_archive.PIECE_BYTES))  # it became shorter
                yield piece
                self.report.moved(len(piece))
                left -= len(piece)
            facts = os.fstat(file.fileno())
        if [facts.st_size, facts.st_mtime_ns] == state[1:3]:
            self.report.count(state[1])
        else:
            self._changed.append(name)

    def _take(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._complaint.add(data)
            return
        self._printed += data
        if len(self._printed) > _MOST_ANSWER:
            raise Refused("its answer has many megabytes")
        if b"\n" in data:
            *lines, self._printed = self._printed.split(b"\n")
            for answer in map(document, map(bytes, lines)):
                if not isinstance(answer, dict):
                    raise Refused("its answer has no names")
                self._last = answer
                if "want" in answer:
                    self._wanted = self._files_of(answer["want"])
                    self._decided.set()

    def _files_of(self, wanted: Any) -> list[str]:
        names = enumerate(self._there.items())
        files = {number: name for number, (name, state) in names if state[0] == "f"}
        if isinstance(wanted, list) and all(type(n) is int and n in files for n in wanted):
            return [files[number] for number in wanted]
        raise Refused("it wants what is no file of this folder")
