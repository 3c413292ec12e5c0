"""Runs of cells as lines of text: all at once, or as their records come."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from jlremote import times
from jlremote.output.recorded_files import Record
from jlremote.output.runs import GONE, RUNNING, UNSURE, Output, Run, Runs, output_of, runs_of
from jlremote.output.screen import LineScreen, shown
from jlremote.text import one_line

# Kept back once the cursor has moved up, as it may come back to them.
_MOVING = 16
_CODE_SIGNS = 60


class View:
    """The text of one run, as far as it has come."""

    def __init__(self) -> None:
        self._screen = LineScreen()
        self._told = 0  # the lines of the screen that were returned

    def add(self, output: Output) -> list[str]:
        """Add an output; return the lines that are finished."""
        if output["output_type"] == "stream":
            self._screen.write(output["text"])
            return self._done()
        return [*self.rest(), *_shown(output)]

    def rest(self) -> list[str]:
        """Return all lines that were not returned, and begin a new line."""
        lines = self._screen.lines(self._told)
        self._screen, self._told = LineScreen(), 0
        return lines if lines and lines[-1] else lines[:-1]

    @property
    def current(self) -> str:
        """The line that is being written."""
        row = self._screen.row
        return self._screen.lines(row, row + 1)[0]

    def _done(self) -> list[str]:
        topmost = self._screen.topmost()
        if topmost is not None:  # what may have changed is shown once more
            self._told = min(self._told, topmost)
        end = self._screen.row - (_MOVING if self._screen.moved_up else 0)
        if end <= self._told:
            return []
        lines = self._screen.lines(self._told, end)
        self._told = end
        return lines


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
    timed = [(run.started, _whole(run)) for run in runs]
    timed += [(record.time, [Line("ending", missing(record))]) for record in lost]
    return [line for _, lines in sorted(timed, key=lambda each: each[0]) for line in lines]


def _whole(run: Run) -> list[Line]:
    run.settle()
    return [
        Line("heading", heading(run)),
        *(Line("text", text) for text in lines_of(run.outputs)),
        Line("ending", ending(run)),
    ]


class Live:
    """The lines of runs that go on: first what is recorded, then record by record."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._views: dict[int, View] = {}  # by the run's identity
        self._last: Run | None = None  # the run that the last line is of

    @property
    def current(self) -> str:
        """The line that is being written, below the last one that was returned."""
        return self._view(self._last).current if self._last else ""

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
                lines += _texts(self._view(run).add(output))
        for run in self._runs.all():
            run.outputs.clear()
        return lines

    def take(self, record: Record) -> list[Line]:
        """Add a record; return the lines that are finished."""
        run = self._runs.of(record)
        lines = []
        if run is None or record.kind in ("code", "end", "lost", "kernel"):
            self._runs.take(record)
            lines += self._ended()
        if run is not None and record.kind == "code":
            lines += self._headed(run)
        elif run is not None and record.kind == "clear_output":
            lines += _texts(self._view(run).rest())
        elif run is not None and record.kind != "end":
            done = self._view(run).add(output_of(record))
            lines += [*self._headed(run), *_texts(done)] if done else []
        if record.kind == "lost":
            lines.append(Line("ending", missing(record)))
        return lines

    def _ended(self) -> list[Line]:
        lines = []
        for run in self._runs.closed:
            rest = self._view(run).rest()
            lines += [*self._headed(run), *_texts(rest), Line("ending", ending(run))]
            self._views.pop(id(run))
        self._runs.closed.clear()
        return lines

    def _view(self, run: Run) -> View:
        return self._views.setdefault(id(run), View())

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
