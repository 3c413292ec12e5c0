"""Runs of cells as lines of text: all at once, or as their records come."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from jlremote import times
from jlremote.output.recorded_files import Record
from jlremote.output.runs import GONE, RUNNING, UNSURE, Output, Run, Runs, output_of, runs_of
from jlremote.text import begun_sequence, one_line, without_controls

_CODE_SIGNS = 60
_STYLES = 16  # sequences that make a style together
_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_RESET = re.compile(r"\x1b\[[0;]*m")
_KEPT = re.compile(rf"{_COLOUR.pattern}|[\r\b]")
_PART = re.compile(rf"{_COLOUR.pattern}|\r|\x08+|[^\r\x08\x1b]{{1,4096}}")


class View:
    """The text of one run, as far as it has come.

    A carriage return lets what follows take the place of the line; a backspace removes a character.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._line: list[str] = []  # pieces of text, and sequences of colours
        self._at_begin = False  # whether the next text takes the place of the line
        self._style = ""
        self._held = ""  # the beginning of a sequence

    def add(self, output: Output) -> list[str]:
        """Add an output; return the lines that are finished."""
        if output["output_type"] != "stream":
            return [*self.rest(), *_shown(output)]
        text, done = self._held + output["text"], []
        self._held = begun_sequence(text)
        first, *more = without_controls(text.removesuffix(self._held), _KEPT).split("\n")
        self._write(first)
        for line in more:
            done.append(self.current)
            self._line, self._at_begin = [], True
            self._write(line)
        return done

    def rest(self) -> list[str]:
        """Return the line that is not finished, if there is one, and begin a new one."""
        line = self.current
        self._begin()
        return [line] if line else []

    @property
    def current(self) -> str:
        """The line that is being written; escape sequences are colours, which end with it."""
        line = "".join(self._line)
        is_open = any(not _RESET.fullmatch(last) for last in _COLOUR.findall(line)[-1:])
        return f"{line}\x1b[0m" if is_open else line

    def _write(self, line: str) -> None:
        for part in _PART.findall(line):
            if part == "\r":
                self._at_begin = True
            elif part[0] == "\b":
                self._remove(len(part))
            elif part[0] == "\x1b":
                self._style = _styled(self._style, part)
                self._line += [] if self._at_begin else [part]
            else:
                if self._at_begin:
                    self._line, self._at_begin = [self._style], False
                self._line.append(part)

    def _remove(self, signs: int) -> None:
        while signs and self._line and self._line[-1][:1] != "\x1b" and not self._at_begin:
            last = self._line.pop()
            self._line += [last[:-signs]] if len(last) > signs else []
            signs -= min(signs, len(last))


def _styled(style: str, sequence: str) -> str:
    """Return a style after one more sequence of colours; `0` and nothing begin anew."""
    if re.match(r"\x1b\[0*[;m]", sequence):
        return "" if _RESET.fullmatch(sequence) else sequence
    return "".join(_COLOUR.findall(style + sequence)[-_STYLES:])


def shown(text: str) -> list[str]:
    """Return the lines of a finished text; a newline at its end begins no further one."""
    view = View()
    return [*view.add({"output_type": "stream", "text": text}), *view.rest()]


def lines_of(outputs: Iterable[Output]) -> list[str]:
    """Return outputs as lines; they have no escape sequences but colours, which end with a line."""
    view = View()
    lines = [line for output in outputs for line in view.add(output)]
    return lines + view.rest()


def _shown(output: Output) -> list[str]:
    if output["output_type"] == "error":
        error = "\n".join(output["traceback"]) or f"{output['ename']}: {output['evalue']}"
        return shown(error)
    text = output["data"].get("text/plain")
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        text = "".join(text)
    if isinstance(text, str):
        return shown(text)
    kinds = ", ".join(str(kind) for kind in output["data"])
    return shown(f"<{one_line(kinds)}>") if kinds else []


def heading(run: Run) -> str:
    """Return the line above a run: notebook, number, moment, the code's first line."""
    count = "*" if run.status == RUNNING else run.count or " "
    code = one_line((run.code or "").strip().partition("\n")[0])
    if len(code) > _CODE_SIGNS:
        code = f"{code[: _CODE_SIGNS - 1]}…"
    begun = _moment(run.started)
    name = one_line(run.notebook or f"kernel {run.kernel[:8]}")
    return ", ".join(filter(None, (f"{name} [{count}]", begun, code)))


_STATES = {
    "died": "ended: its kernel died",
    "restarted": "ended: its kernel was restarted",
    "ended": "ended: its kernel was ended",
    GONE: "ended: its kernel is gone; last heard of",
    UNSURE: "cannot tell whether it runs; last heard of",
}


def ending(run: Run, now: float | None = None) -> str:
    """Return the line below a run: how and after how long it ended."""
    until = run.ended if run.ended is not None else now if now is not None else time.time()
    lasted = times.in_words(max(0, round(until - run.started)))
    state = _STATES.get(run.status) or one_line(run.status)
    gaps = "" if run.complete else "; output is missing"
    return f"[{run.count or ' '}] {state} {'for' if run.ended is None else 'after'} {lasted}{gaps}"


def missing(record: Record) -> str:
    """Return the line where output is missing: from when, until when and why."""
    since, until = (record.content.get(name) for name in ("from", "until"))
    span = f"{_moment(since)} to {_moment(until)}"
    return f"output is missing from {span}: {one_line(record.text('why'))}"


def _moment(seconds: object) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return "?"


@dataclass(frozen=True)
class Line:
    """A line for the terminal."""

    kind: Literal["heading", "text", "ending"]
    text: str  # escape sequences are colours, which end with the line


def whole(runs: Iterable[Run], lost: Iterable[Record]) -> list[Line]:
    """Return runs, and what is missing, in the order of time."""
    timed = [(record.time, [Line("ending", missing(record))]) for record in lost]
    for run in runs:
        run.settle()
        texts = _texts(lines_of(run.outputs))
        lines = [Line("heading", heading(run)), *texts, Line("ending", ending(run))]
        timed.append((run.started, lines))
    return [line for _, lines in sorted(timed, key=lambda each: each[0]) for line in lines]


class Live:
    """The lines of runs that go on: first what is recorded, then record by record."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._views: defaultdict[int, View] = defaultdict(View)  # by the run's identity
        self._last: Run | None = None  # the run that the last line is of

    @property
    def current(self) -> str:
        """The line that is being written, below the last one that was returned."""
        return self._views[id(self._last)].current if self._last else ""

    def begin(self, records: Iterable[Record]) -> list[Line]:
        """Return the lines of what is recorded so far."""
        self._runs = runs_of(records)
        self._runs.closed.clear()
        going = [run for run in self._runs.all() if run.ended is None]
        lines = whole([run for run in self._runs.all() if run.ended is not None], self._runs.lost)
        for run in going:
            run.settle()
            lines += self._headed(run)
            for output in run.outputs:
                lines += _texts(self._views[id(run)].add(output))
        for run in self._runs.all():
            run.outputs.clear()
        return lines

    def take(self, record: Record) -> list[Line]:
        """Add a record; return the lines that are finished."""
        run = self._runs.of(record)
        lines = []
        if run is None or record.kind in ("code", "end", "lost", "kernel"):
            self._runs.take(record)
            for closed in self._runs.closed:
                rest = _texts(self._views.pop(id(closed), View()).rest())
                lines += [*self._headed(closed), *rest, Line("ending", ending(closed))]
            self._runs.closed.clear()
        if run is not None and record.kind == "code":
            lines += self._headed(run)
        elif run is not None and record.kind == "clear_output":
            lines += _texts(self._views[id(run)].rest())
        elif run is not None and record.kind != "end":
            done = self._views[id(run)].add(output_of(record))
            lines += [*self._headed(run), *_texts(done)] if done else []
        if record.kind == "lost":
            lines.append(Line("ending", missing(record)))
        return lines

    def _headed(self, run: Run) -> list[Line]:
        # Only where the line before is of another run.
        if run is self._last:
            return []
        self._last = run
        return [Line("heading", heading(run))]


def ended(records: Iterable[Record]) -> Iterator[Run]:
    """Yield each run once it has ended."""
    runs = Runs()
    for record in records:
        runs.take(record)
        for run in runs.closed:
            yield run
            runs.drop(run)
        runs.closed.clear()


def _texts(lines: Iterable[str]) -> list[Line]:
    return [Line("text", line) for line in lines]
