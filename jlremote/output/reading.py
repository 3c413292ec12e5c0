"""The recorder's files of a session, read once or followed."""

from __future__ import annotations

import itertools
import shlex
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter

from jlremote.containers import recording
from jlremote.errors import JlrError, NotFound, Unreachable, Usage
from jlremote.hosts import halted
from jlremote.hosts.context import Context
from jlremote.hosts.links import link_of
from jlremote.jupyter.api import JupyterApi
from jlremote.jupyter.scripts import session_directory
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.output import recorded_files
from jlremote.output.recorded_files import Reader, Record
from jlremote.output.runs import GONE, UNSURE, Run, Runs, is_run, last_known
from jlremote.place.runtimes.table import runtime_of
from jlremote.selection import session_selection
from jlremote.text import did_you_mean, listed, one_line

PAUSES = (0.5, 1.0, 2.0, 5.0)
LATE_LOOKS = 20  # at what the recorder still writes; the first without news is the last


@dataclass(frozen=True)
class Recorded:
    """The runs of a session's cells, of all notebooks or of the one that was asked for."""

    session: SessionRecord
    host: Link
    runs: list[Run]  # the first one first
    lost: list[Record]
    left_out: int = 0  # bytes of records before these


def recorded(
    selector: str | None, notebook: str | None, context: Context, *, end_only: bool = False
) -> Recorded:
    """Return what is recorded of a session (else `NotFound`), or the end of what each kernel said.

    `notebook` may be the id of a run of `jlr exec`; if several notebooks end so, raise `Usage`.
    """
    session = session_selection.chosen(selector, context)
    host = link_of(session, context)
    served = recording.revive(host, session, context)
    runs = Runs()
    of_run = notebook is not None and is_run(notebook)  # which may be an old one
    end_only = end_only and not of_run
    reader, records = _all(host, session, end_only=end_only)
    records.sort(key=attrgetter("time"))  # a piece may have got its later name between two looks
    gone = [] if served else last_known(records, UNSURE if served is None else GONE)
    for record in (*records, *gone):
        runs.take(record)
    looks = LATE_LOOKS if served else 0
    while looks and _lags(host, session, runs.all(), notebook if of_run else None):
        threading.Event().wait(PAUSES[0])
        more = [one for one in _printed(host, session, reader, end_only=end_only) if one]
        for record in more:
            runs.take(record)
        looks = looks - 1 if more else 0
    selected, lost = runs.all(), runs.lost
    if notebook is not None:
        named = notebook if of_run else chosen(notebook, [r.notebook for r in selected])
        selected = [run for run in selected if named in (run.request, run.notebook)]
        if not selected:
            waits = f"`jlr output -f {shlex.quote(session.selector)} {named}` waits for it"
            raise NotFound(f"no run `{named}` is recorded in `{session.selector}`", hint=waits)
        kernels = {run.kernel for run in selected}
        lost = [record for record in lost if record.kernel in kernels]
    return Recorded(session, host, selected, lost, reader.left_out)


def _lags(host: Link, session: SessionRecord, runs: list[Run], named: str | None) -> bool:
    """Return whether the recorder has not written all yet of a run that has ended."""
    going = {run.kernel for run in runs if run.ended is None}
    if named is not None and all(run.request != named for run in runs):
        return True
    with suppress(JlrError):
        if going and (forward := host.status().forward(session.name)):
            kernels = JupyterApi(forward.local_port, forward.server, PAUSES[-1]).kernels()
            return any(each.id in going and each.state != "busy" for each in kernels)
    return False


def followed(
    selector: str | None, notebook: str | None, context: Context
) -> Iterator[Record | None]:
    """Yield what is recorded, `None` where that ends for now, and then what comes, without end.

    After a loss of the connection it goes on where it was: no record is lost or comes twice. Where
    `notebook` is the id of a run of `jlr exec`, the records end with it. Raise as `recorded`.
    """
    session = session_selection.chosen(selector, context)
    host = link_of(session, context)
    served = recording.revive(host, session, context)
    reader = Reader()
    records = _again(lambda: _printed(host, session, reader, follow=True), session, context)
    before = [record for record in iter(records.__next__, None) if record]
    before.sort(key=attrgetter("time"))
    before += last_known(before, GONE) if served is False else []
    name = None
    if notebook is not None and not is_run(notebook):
        name = chosen(notebook, [record.notebook for record in before])
    after = (record for record in records if record is not None)
    every: Iterator[Record | None] = itertools.chain(before, (None,), after)
    if notebook is not None and is_run(notebook):
        return _of_run(every, notebook)
    return _of_notebook(every, name) if name else every


def _all(
    host: Link, session: SessionRecord, *, end_only: bool, in_job: bool = True
) -> tuple[Reader, list[Record]]:
    reader = Reader()
    try:
        printed = list(_printed(host, session, reader, end_only=end_only, in_job=in_job))
        if None not in printed:
            raise _unreadable(session, "the host sent no records")
    except (NotFound, Unreachable):
        raise
    except JlrError:
        if not (in_job and runtime_of(session).in_jobs):
            raise
        # Its job has ended, and the host itself has its folder.
        return _all(host, session, end_only=end_only, in_job=False)
    return reader, [record for record in printed if record]


def _again(
    read: Callable[[], Iterator[Record | None]], session: SessionRecord, context: Context
) -> Iterator[Record | None]:
    pauses = iter(PAUSES)
    while True:
        try:
            for record in read():
                pauses = iter(PAUSES)
                yield record
            pause = PAUSES[0]  # its container was restarted, or the engine
        except Unreachable as lost:
            pause = next(pauses, PAUSES[-1])
            if pause == PAUSES[0]:
                place = session.selector
                context.progress.note(f"{lost.message}; `{place}` keeps recording; trying again")
        threading.Event().wait(pause)


def _printed(
    host: Link,
    session: SessionRecord,
    reader: Reader,
    *,
    follow: bool = False,
    end_only: bool = False,
    in_job: bool = True,
) -> Iterator[Record | None]:
    reader.again()
    runtime, said = runtime_of(session), b""
    directory = session_directory(runtime, session.name)
    script = recorded_files.script(directory, reader, follow=follow, end_only=end_only)
    inside = (runtime.beside if in_job else runtime.inside)(session.name, script)
    with host.process(inside) as process:
        for stream, data in process:
            if stream == "stdout":
                yield from reader.take(data)
            else:
                said = (said + data)[-1000:]
    _check(host, process.status, session, said)


def _check(host: Link, status: int | None, session: SessionRecord, said: bytes) -> None:
    place = session.selector
    begin, missing = f"jlr start {session.host} {session.name}", f"`{place}` has no recorded output"
    if status == recorded_files.MISSING:
        raise NotFound(missing, hint=f"`{begin}` records it from now on")
    if status == recorded_files.OFF:
        hint = f"`jlr stop {place}`, then `{begin} --record`"
        raise NotFound(f"{missing}: it was started with `--no-record`", hint=hint)
    if status:
        halted.check(host, session)
        why = one_line(said.decode(errors="replace")) or f"exit status {status}"
        raise _unreadable(session, why)


def _unreadable(session: SessionRecord, why: str) -> JlrError:
    place = session.selector
    hint = f"`jlr list {place}` says whether its container runs"
    return JlrError(f"cannot read what `{place}` printed: {why}", hint=hint)


def chosen(
    typed: str,
    notebooks: Iterable[str | None],
    missing: str = "no output is recorded of",
    hint: str = "no cell has run",
) -> str:
    """Return the one notebook that is typed, or ends so (`NotFound`: none, `Usage`: several)."""
    known = list(dict.fromkeys(name for name in notebooks if name))
    matches = [name for name in known if name == typed]
    matches = matches or [name for name in known if name.endswith(f"/{typed}")]
    matches = matches or [name for name in known if name.endswith(typed)]
    if len(matches) == 1:
        return matches[0]
    names = listed([f"`{shlex.quote(one_line(name))}`" for name in matches or known], 4)
    if matches:
        raise Usage(f"several notebooks are called `{typed}`", hint=f"type more of it: {names}")
    hint = did_you_mean(typed, known) or (f"known: {names}" if names else hint)
    raise NotFound(f"{missing} a notebook `{typed}`", hint=hint)


def _of_run(records: Iterable[Record | None], run: str) -> Iterator[Record | None]:
    """Yield the records of a run until its end, or that of its kernel."""
    kernel, over, is_new = "", False, False
    for record in records:
        if record is None:
            is_new = True
            yield None
        elif record.request == run or (record.kind == "kernel" and record.kernel == kernel):
            kernel = record.kernel
            over = over or record.kind in ("end", "kernel")
            yield record
        if over and is_new:
            return


def _of_notebook(records: Iterable[Record | None], name: str) -> Iterator[Record | None]:
    """Yield the records of a notebook's kernels, also those from before its name was known."""
    notebooks: dict[str, str] = {}
    early: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record is None:
            yield None
            continue
        if record.notebook:
            notebooks[record.kernel] = record.notebook
        if record.kernel not in notebooks:
            early[record.kernel].append(record)
        elif notebooks[record.kernel] == name:
            yield from early.pop(record.kernel, ())
            yield record
        else:
            early.pop(record.kernel, None)
