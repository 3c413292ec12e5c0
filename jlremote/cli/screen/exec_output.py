"""What `jlr exec` prints: the output of a program, an event per line, or one object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from jlremote.cli.screen.program_output import JobOutput
from jlremote.cli.screen.terminal import answer_json, coloured
from jlremote.errors import EXIT_INTERRUPTED
from jlremote.hosts.context import Context
from jlremote.kernels.execution import ExecPlace
from jlremote.output import rich_files
from jlremote.output.recorded_files import Record
from jlremote.output.runs import Runs, output_of, size_of
from jlremote.output.view import lines_of
from jlremote.text import without_controls

MOST_CHARACTERS = 64_000  # of an object's outputs
_SHOWN = ("display_data", "execute_result")
Records = Generator[Record]
Take = Callable[[Record, list[str]], None]  # a record and the files that were written for it


def show(records: Records, take: Take, folder: Path | None, context: Context) -> int:
    """Show records as they come, with files in a folder; return the exit code."""
    code = written = 0
    with closing(records):  # which says that the run goes on
        for record in records:
            files: list[str] = []
            if folder is not None and record.kind in _SHOWN:
                written += 1
                files = rich_files.save(output_of(record), folder, f"{record.request}-{written}")
            for file in files:
                context.progress.note(f"wrote `{file}`")
            take(record, files)
            if record.kind == "error" and record.text("ename") == "KeyboardInterrupt":
                code = EXIT_INTERRUPTED
            elif record.kind == "end" and record.text("status") != "ok":
                code = code or 1
    return code


def as_text() -> Take:
    """Return what writes streams and results to stdout, and errors to stderr."""
    output = JobOutput()

    def take(record: Record, _files: list[str]) -> None:
        to_stderr = record.kind == "error" or record.text("name") == "stderr"
        text = record.text("text")
        if record.kind in (*_SHOWN, "error"):
            lines = lines_of([output_of(record)])
            if not coloured(sys.stderr if to_stderr else sys.stdout):
                lines = [without_controls(line) for line in lines]
            text = "".join(f"{line}\n" for line in lines)
        output.show("stderr" if to_stderr else "stdout", text.encode(errors="replace"))

    return take


def as_lines(place: ExecPlace) -> Take:
    """Return what writes each record as a line of JSON."""

    def take(record: Record, files: list[str]) -> None:
        event = {"event": record.kind, "run": record.request, "content": record.content}
        more = place.to_json() if record.kind == "code" else {"files": files} if files else {}
        answer_json(event | more, indent=None)

    return take


class ExecObject:
    """The object of `--json`, with the last outputs."""

    def __init__(self, place: ExecPlace) -> None:
        self._place = place
        self._runs, self._size, self._cut = Runs(), 0, False
        self._files: list[str] = []

    def take(self, record: Record, files: list[str]) -> None:
        """Add a record."""
        self._files += files
        if isinstance(data := record.content.get("data"), dict):
            self._cut |= not files and any(str(kind).startswith("image/") for kind in data)
            text = {"data": {"text/plain": data.get("text/plain", "")}}
            record = replace(record, content=record.content | text)
        self._runs.take(record)
        self._size += size_of(output_of(record))
        if self._size > 2 * MOST_CHARACTERS:
            self._bound()

    def _bound(self) -> None:
        self._size = 0
        for run in reversed(self._runs.all()):
            self._cut |= run.keep_end(MOST_CHARACTERS - self._size)
            self._size += sum(map(size_of, run.outputs))

    def show(self) -> None:
        """Print it."""
        self._bound()
        runs = self._runs.all()
        last = runs[-1].to_json() if runs else {}
        names = ("run", "status", "execution_count", "started", "ended")
        facts = self._place.to_json() | {name: last.get(name) for name in names}
        rest = f"{self._place.rest(last['run'])} --json" if self._cut else None
        outputs = [output for run in runs for output in run.saved_outputs()]
        answer_json(facts | {"outputs": outputs, "files": self._files, "truncated": rest})
