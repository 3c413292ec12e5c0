"""`jlr exec`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import Invocation, command, keep_json, option
from jlremote.cli.completion import candidates
from jlremote.cli.screen.program_output import JobOutput
from jlremote.cli.screen.terminal import answer_either, answer_json, as_json, coloured
from jlremote.errors import EXIT_INTERRUPTED, JlrError, NotFound, Usage
from jlremote.output.recorded_files import Record
from jlremote.output.runs import Runs, output_of, save_rich, size_of
from jlremote.output.view import lines_of
from jlremote.text import one_line, reason_of, without_controls
from jlremote.times import seconds_of

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.kernels.execution import ExecPlace

_MOST_CHARACTERS = 64_000  # of an object's outputs
_SHOWN = ("display_data", "execute_result")
_Records = Generator[Record]
_Take = Callable[[Record, list[str]], None]  # a record and the files that were written for it


@command("exec", json="Print a JSON object at the end, with the last 64,000 characters of output.")
@click.argument("session", required=False, shell_complete=candidates.sessions_and_files)
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@option("-c code CODE", "Run this code.")
@option("--notebook NOTEBOOK", "Run it in the kernel of this notebook, which must run.")
@option("-k --kernel KIND", "Run it in a lasting kernel of this kind.")
@option(
    "--out FOLDER",
    "Write images, HTML and PDF to new files of this folder.",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@option(
    "--sync [=DIR]",
    "Send this folder, or DIR, there first; run in it, also later calls.",
    flag_value=".",
)
@option(
    "--timeout TIME",
    "End after `30s`, `4m`, …; the code runs on, and its run is named.",
    type=lambda text: seconds_of(text, "`--timeout`"),
)
@option("--no-wait", "Fail (exit code 7) if the kernel is busy.")
@option("--interrupt", "Interrupt what runs in the kernel, and run nothing.")
@option("--json-lines", "Print each event as a line of JSON, as it comes.", callback=keep_json)
def execute(
    invocation: Invocation, /, *, session: str | None, file: str | None, **options: Any
) -> int:
    """Execute code in a kernel of a session, and print what it prints.

    It is CODE, a FILE of this machine (of a notebook its code cells, up to the first that fails),
    or stdin for `-`. It runs in one lasting kernel of `jlr exec`, so variables stay from one call
    to the next; with --notebook in that notebook's kernel, whose page stays as it is.

    Printed text and results go to stdout, errors to stderr, and the exit code is 1 if the code
    fails. `jlr output` has all of it, too. Ctrl-C interrupts the code, a second one leaves it
    running. `input()` asks on a terminal, and fails without one.

    Examples:
        jlr exec -c 'x = [1, 2]'
        jlr exec -c 'sum(x)'                         # variables stay
        jlr exec cont1 train.py --timeout 4m
        jlr exec cont1 train.py --sync               # with the modules of this folder
        jlr exec dgx/cont1 --notebook train.ipynb -c 'print(loss)'
        jlr exec --interrupt                         # what was left running
        jlr exec -c 'df.plot()' --out .              # images to files
        echo 1 + 1 | jlr exec -
    """
    code, notebook, kernel = (options[name] for name in ("code", "notebook", "kernel"))
    out, sync, json_lines = (options[name] for name in ("out", "sync", "json_lines"))
    if notebook is not None and kernel is not None:
        raise Usage("`--notebook` and `--kernel` are two kernels", hint="leave out one of them")
    from jlremote.kernels import execution

    context = invocation.context()
    if options["interrupt"]:
        if code is not None or file is not None:
            raise Usage("`--interrupt` runs no code", hint="leave out the code")
        place = execution.interrupt(session, notebook, kernel, context)
        text = f"interrupted the kernel of `{one_line(place.kernel.notebook)}`"
        answer_either(text, place.to_json())
        return 0
    if code is None and file is None:
        session, file = None, session
    if (code is None) == (file is None):
        raise Usage("one of `-c CODE` and FILE is needed", hint="`jlr exec -c 1+1`; `-` is stdin")
    cells = [code] if code is not None else _cells(str(file))
    asks = not invocation.no_input and sys.stdin.isatty()
    if sync is not None:
        from jlremote.copies.sync import SyncRequest, sync_all

        into = sync_all(SyncRequest(Path(sync).expanduser(), session), context)
        cells = [f"__import__('os').chdir({into!r})", *cells]
    seconds, waits = options["timeout"], not options["no_wait"]
    request = execution.ExecRequest(session, cells, notebook, kernel, seconds, waits, asks)
    place, records = execution.execute(request, context)
    if json_lines or not as_json():
        take = _as_lines(place) if json_lines else _as_text()
        return _show(records, take, out, context)
    told = ExecObject(place)
    try:
        return _show(records, told.take, out, context)
    finally:
        told.show()


def _cells(file: str) -> list[str]:
    """Return the codes of a file of this machine, or of stdin."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as failure:
        why, gives = reason_of(failure), "`-c CODE` gives code itself"
        raise NotFound(f"cannot read `{one_line(file)}`: {why}", hint=gives) from failure
    if file.endswith(".ipynb"):
        from jlremote.output.notebook_copy import code_cells

        return code_cells(data, one_line(file))
    try:
        return [data.decode("utf-8-sig")]
    except UnicodeDecodeError:
        raise JlrError(f"`{one_line(file)}` is not text in UTF-8") from None


def _show(records: _Records, take: _Take, folder: Path | None, context: Context) -> int:
    """Show records as they come, with files in a folder; return the exit code."""
    code = written = 0
    with closing(records):  # which says that the run goes on
        for record in records:
            files: list[str] = []
            if folder is not None and record.kind in _SHOWN:
                written += 1
                files = save_rich(output_of(record), folder, f"{record.request}-{written}")
            for file in files:
                context.progress.note(f"wrote `{file}`")
            take(record, files)
            if record.kind == "error" and record.text("ename") == "KeyboardInterrupt":
                code = EXIT_INTERRUPTED
            elif record.kind == "end" and record.text("status") != "ok":
                code = code or 1
    return code


def _as_text() -> _Take:
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


def _as_lines(place: ExecPlace) -> _Take:
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
        if self._size > 2 * _MOST_CHARACTERS:
            self._bound()

    def _bound(self) -> None:
        self._size = 0
        for run in reversed(self._runs.all()):
            self._cut |= run.keep_end(_MOST_CHARACTERS - self._size)
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
