"""A cell's run as lines of text: all at once, or as its records come."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime

from jlremote import times
from jlremote.output.records import Record
from jlremote.output.runs import GONE, RUNNING, UNSURE, Output, Run
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
        """Take one more output; return the lines that are done."""
        if output["output_type"] == "stream":
            self._screen.write(output["text"])
            return self._done()
        return [*self.rest(), *_shown(output)]

    def rest(self) -> list[str]:
        """Return all lines that were not returned; what follows begins a new one."""
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
        told = "\n".join(output["traceback"]) or f"{output['ename']}: {output['evalue']}"
        return shown(told)
    text = _text(output["data"].get("text/plain"))
    if text is not None:
        return shown(text)
    kinds = ", ".join(str(kind) for kind in output["data"])
    return shown(f"<{one_line(kinds)}>") if kinds else []


def _text(value: object) -> str | None:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return value if isinstance(value, str) else None


def heading(run: Run) -> str:
    """Return the line above a run's output: notebook, number, moment, the code's first line."""
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
    """Return the line below it: how and after how long it ended."""
    until = run.ended if run.ended is not None else now if now is not None else time.time()
    lasted = times.in_words(max(0, round(until - run.started)))
    state = _STATES.get(run.status) or one_line(run.status)
    gaps = "" if run.complete else "; output is missing"
    return f"[{run.count or ' '}] {state} {'for' if run.ended is None else 'after'} {lasted}{gaps}"


def missing(record: Record) -> str:
    """Return the line where output is missing: since when, until when and why."""
    since, until = (record.content.get(name) for name in ("from", "until"))
    span = f"{_moment(since)} to {_moment(until)}"
    return f"output is missing from {span}: {one_line(record.text('why'))}"


def _moment(seconds: object) -> str:
    """Return a moment by this machine's clock, which a person compares it with."""
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return "?"
