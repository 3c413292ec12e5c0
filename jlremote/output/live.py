"""Runs as lines while they go on, several at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from jlremote.output.records import Record
from jlremote.output.runs import Run, Runs, output_of, runs_of
from jlremote.output.view import View, ending, heading, lines_of, missing


@dataclass(frozen=True)
class Line:
    """A line for the terminal."""

    kind: Literal["heading", "text", "ending"]
    text: str  # escape sequences are colours, which end with the line


def whole(runs: Iterable[Run], lost: Iterable[Record]) -> list[Line]:
    """Return runs, and what is missing, in the order of time."""
    told = [(run.started, _whole(run)) for run in runs]
    told += [(record.time, [Line("ending", missing(record))]) for record in lost]
    return [line for _, lines in sorted(told, key=lambda each: each[0]) for line in lines]


def _whole(run: Run) -> list[Line]:
    run.settle()
    return [
        Line("heading", heading(run)),
        *(Line("text", text) for text in lines_of(run.outputs)),
        Line("ending", ending(run)),
    ]


class Live:
    """Runs that are followed: what is recorded already, and then record by record."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._views: dict[int, View] = {}  # by the run's identity
        self._last: Run | None = None  # the run that the last line is of

    @property
    def current(self) -> str:
        """The line that is being written, below the last one that was returned."""
        return self._view(self._last).current if self._last else ""

    def begin(self, records: Iterable[Record]) -> list[Line]:
        """Return what is recorded; of what still runs, the lines that are done."""
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
        """Return the lines that are done with one more record."""
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
        """Return the heading of a run, if the line before is another's."""
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
