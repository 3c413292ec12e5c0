"""What `jlr exec` prints: the output of a program, an event per line, or one object."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Protocol

from jlremote.cli.screen.program_output import JobOutput
from jlremote.cli.screen.terminal import answer_json, coloured
from jlremote.kernels.execution import ExecPlace
from jlremote.output.recorded_files import Record
from jlremote.output.runs import Output, Runs, output_of, size_of
from jlremote.output.view import lines_of
from jlremote.text import without_controls

MOST_CHARACTERS = 64_000  # of an object's outputs
_RICH = ("display_data", "execute_result", "update_display_data")


class Sink(Protocol):
    """The receiver of records and of the files that were written for them."""

    def take(self, record: Record, files: list[Path]) -> None:
        """Show a record."""

    def end(self) -> None:
        """Show what was kept back."""


class ExecText:
    """Writes streams and results to stdout, errors to stderr, as they come."""

    def __init__(self) -> None:
        self._output = JobOutput()

    def take(self, record: Record, files: list[Path]) -> None:
        if record.kind == "stream":
            stream = "stderr" if record.text("name") == "stderr" else "stdout"
            self._output.show(stream, record.text("text").encode(errors="replace"))
        elif record.kind in (*_RICH[:2], "error"):
            failed = record.kind == "error"
            lines = lines_of([output_of(record)])
            if not coloured(sys.stderr if failed else sys.stdout):
                lines = [without_controls(line) for line in lines]
            text = "".join(f"{line}\n" for line in lines)
            self._output.show("stderr" if failed else "stdout", text.encode(errors="replace"))

    def end(self) -> None:
        """Do nothing: all is written."""


class ExecEvents:
    """Writes each record as a line of JSON."""

    def __init__(self, place: ExecPlace) -> None:
        self._place = place

    def take(self, record: Record, files: list[Path]) -> None:
        event: dict[str, Any] = {"event": record.kind, "run": record.request}
        if record.kind == "code":
            event |= {"execution_count": record.content.get("execution_count")}
            event |= _facts(self._place)
        else:
            event["content"] = record.content
        if files:
            event["files"] = [str(file) for file in files]
        answer_json(event, indent=None)

    def end(self) -> None:
        """Do nothing: all is written."""


class ExecObject:
    """Writes one object at the end, with the last outputs."""

    def __init__(self, place: ExecPlace) -> None:
        self._place = place
        self._runs, self._size, self._cut = Runs(), 0, False
        self._files: list[str] = []

    def take(self, record: Record, files: list[Path]) -> None:
        self._files += map(str, files)
        if record.kind in _RICH:
            record.content["data"] = _text_alone(output_of(record))
        self._runs.take(record)
        self._size += size_of(output_of(record)) if record.kind in ("stream", *_RICH) else 0
        if self._size > 2 * MOST_CHARACTERS:
            self._bound()

    def _bound(self) -> None:
        self._size = 0
        for run in reversed(self._runs.all()):
            self._cut |= run.keep_end(MOST_CHARACTERS - self._size)
            self._size += sum(map(size_of, run.outputs))

    def end(self) -> None:
        self._bound()
        runs = self._runs.all()
        facts = runs[-1].to_json() if runs else {}
        names = ("run", "status", "execution_count", "started", "ended")
        rest = f"{self._place.rest(facts['run'])} --json" if self._cut else None
        outputs = [output for run in runs for output in run.saved_outputs()]
        shown = {name: facts.get(name) for name in names} | _facts(self._place)
        answer_json(shown | {"outputs": outputs, "files": self._files, "truncated": rest})


def _facts(place: ExecPlace) -> dict[str, Any]:
    host, name = place.session.host, place.session.name
    return {
        "host": host,
        "name": name,
        "notebook": place.kernel.notebook,
        "kernel": place.kernel.id,
    }


def _text_alone(output: Output) -> dict[str, Any]:
    return {kind: value for kind, value in output["data"].items() if kind == "text/plain"}
