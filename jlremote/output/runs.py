"""The runs of cells, put together from their records."""

from __future__ import annotations

import base64
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jlremote.laptop import paths
from jlremote.output.recorded_files import Record
from jlremote.times import utc
from jlremote.untrusted import local_name, moment

_SUFFIXES = {
    "image/svg+xml": ".svg",
    "text/html": ".html",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "application/pdf": ".pdf",
}
_RUN = re.compile(r"run-[0-9a-f]{12}")

Output = dict[str, Any]  # as nbformat 4 has it; a stream's text as the program wrote it

RUNNING = "running"
UNKNOWN = "unknown"  # its end was not recorded
GONE = "gone"  # its kernel is, and when was not recorded
_FRAME = 100  # characters around an output without a text
UNSURE = "unsure"  # whether its kernel is there cannot be asked
KERNEL_ENDS = ("died", "restarted", "ended", GONE)  # what ends a run with its kernel


def new_run() -> str:
    """Return the id of a new run of `jlr exec`."""
    return f"run-{os.urandom(6).hex()}"


def is_run(typed: str) -> bool:
    """Return whether a typed word is the id of a run of `jlr exec`."""
    return _RUN.fullmatch(typed) is not None


@dataclass
class Run:
    """One run of a cell."""

    kernel: str
    request: str
    started: float  # seconds since the epoch
    notebook: str | None = None
    cell: str | None = None  # its id, as JupyterLab has it
    code: str | None = None  # `None` if its beginning was not recorded
    count: int | None = None  # the number in `[ ]:`
    ended: float | None = None
    status: str = RUNNING  # or `ok`, `error`, `unknown`, `unsure`, or its kernel's end
    complete: bool = True  # whether the recorder missed nothing of it
    outputs: list[Output] = field(default_factory=list)
    _clears_next: bool = False
    _stream: list[str] | None = None  # the pieces of the stream that is the last output

    def to_json(self) -> dict[str, Any]:
        place = {name: getattr(self, name) for name in ("notebook", "cell", "kernel", "code")}
        ended = None if self.ended is None else utc(self.ended)
        span = {"execution_count": self.count, "started": utc(self.started), "ended": ended}
        how = {"status": self.status, "complete": self.complete, "outputs": self.saved_outputs()}
        return {"run": self.request} | place | span | how

    def saved_outputs(self) -> list[Output]:
        """Return the outputs as JupyterLab saves them: of text that was overwritten the last."""
        self.settle()
        return [
            each | ({"text": overwritten(each["text"])} if each["output_type"] == "stream" else {})
            for each in self.outputs
        ]

    def keep_end(self, most: int) -> bool:
        """Drop all but some characters of the outputs, the oldest first; tell if any are gone."""
        self.settle()
        kept: list[Output] = []
        for output in reversed(self.outputs):
            size = size_of(output)
            if size > most and output["output_type"] == "stream" and most > 0:
                output, size = {**output, "text": output["text"][-most:]}, most
            if size > most:
                break
            most -= size
            kept.append(output)
        kept.reverse()
        is_cut = kept != self.outputs
        goes_on = self._stream is not None and kept
        self._stream, self.outputs = [kept[-1]["text"]] if goes_on else None, kept
        return is_cut

    def add(self, output: Output) -> None:
        """Add an output; a stream is one output as long as no other comes between."""
        if self._clears_next:
            self.clear(wait=False)
        last = self.outputs[-1] if self.outputs else {}
        is_stream = output["output_type"] == "stream"
        if is_stream and self._stream is not None and last.get("name") == output["name"]:
            self._stream.append(output["text"])
            return
        self.settle()
        self._stream = [output["text"]] if is_stream else None
        self.outputs.append(output)

    def clear(self, *, wait: bool) -> None:
        """Remove the outputs, or let the next one do so."""
        self.settle()
        self._stream, self._clears_next = None, wait
        if not wait:
            self.outputs.clear()

    def settle(self) -> None:
        """Join the pieces of the last stream."""
        if self._stream is not None and len(self._stream) > 1:
            self._stream[:] = ["".join(self._stream)]
            self.outputs[-1]["text"] = self._stream[0]


class Runs:
    """The runs of all cells, built record by record."""

    def __init__(self) -> None:
        self.lost: list[Record] = []
        self.closed: list[Run] = []  # those that have ended, to be emptied by the caller
        self._runs: dict[tuple[str, str], Run] = {}
        self._open: dict[str, Run] = {}  # by kernel
        self._notebooks: dict[str, str] = {}  # likewise
        self._displays: dict[tuple[str, str], list[Output]] = defaultdict(list)

    def all(self) -> list[Run]:
        """Return the runs, the first one first."""
        for run in self._runs.values():  # of the first, the notebook may not have been known
            run.notebook = run.notebook or self._notebooks.get(run.kernel)
        return sorted(self._runs.values(), key=lambda run: run.started)

    def take(self, record: Record) -> None:
        """Add a record."""
        if record.kind == "lost":
            self._lose(record)
        elif record.kind == "kernel":
            state = record.text("state")
            fate = state if state in (*KERNEL_ENDS, UNSURE) else UNKNOWN
            self._close(record.kernel, fate, record.time)
        elif (run := self.of(record)) is None:
            return
        elif record.kind == "code":
            self._begin(run, record)
        elif record.kind == "end":
            self._end(run, record)
        elif record.kind == "clear_output":
            if record.widget is None:
                run.clear(wait=record.content.get("wait") is True)
        elif record.kind == "update_display_data":  # it may be of another cell
            for output in self._displays.get((record.kernel, _display_id(record)), ()):
                output |= {name: _object(record, name) for name in ("data", "metadata")}
        else:
            run.add(output := output_of(record))
            if name := _display_id(record):
                self._displays[record.kernel, name].append(output)

    def drop(self, run: Run) -> None:
        """Forget a run."""
        self._runs.pop((run.kernel, run.request), None)

    def of(self, record: Record) -> Run | None:
        """Return the run that a record belongs to, a new one if it is the first, or `None`."""
        if record.request is None:
            return None
        place = record.kernel, record.request
        if (run := self._runs.get(place)) is None:
            run = Run(*place, record.time, complete=record.kind == "code")
            self._runs[place] = run
        if record.notebook:
            run.notebook = self._notebooks[record.kernel] = record.notebook
        run.cell = record.cell or run.cell
        return run

    def _begin(self, run: Run, record: Record) -> None:
        if self._open.get(run.kernel) is not run:
            self._close(run.kernel, UNKNOWN, record.time)
        self._open[run.kernel] = run
        run.code = record.text("code")
        count = record.content.get("execution_count")
        run.count = count if isinstance(count, int) and not isinstance(count, bool) else None

    def _end(self, run: Run, record: Record) -> None:
        if self._open.get(run.kernel) is run:
            del self._open[run.kernel]
        run.ended = record.time
        self.closed.append(run)
        failed = any(output["output_type"] == "error" for output in run.outputs)
        run.status = record.text("status") or ("error" if failed else "ok")

    def _close(self, kernel: str, status: str, time: float) -> None:
        if run := self._open.pop(kernel, None):
            run.status, run.ended = status, time
            self.closed.append(run)

    def _lose(self, record: Record) -> None:
        self.lost.append(record)
        since, until = (moment(record.content.get(name)) for name in ("from", "until"))
        for run in self._runs.values():
            begun = until is None or run.started <= until
            went_on = run.ended is None or since is None or run.ended >= since
            its_own = record.request in (None, run.request)
            if run.kernel == record.kernel and its_own and begun and went_on:
                run.complete = False


def size_of(output: Output) -> int:
    """Return about how many characters an output has."""
    if "text" in output:
        return len(output["text"])
    values = output.get("data", {}).values()
    return _FRAME + sum(len(str(value)) for value in (*values, *output.get("traceback", ())))


def last_known(records: Iterable[Record], state: str) -> list[Record]:
    """Return a record for each kernel that says its state since its last record."""
    latest: dict[str, float] = {}
    for record in records:
        latest[record.kernel] = max(record.time, latest.get(record.kernel, 0))
    content = {"state": state}
    return [Record(time, kernel, "kernel", content=content) for kernel, time in latest.items()]


def runs_of(records: Iterable[Record]) -> Runs:
    """Return the runs in records."""
    runs = Runs()
    for record in records:
        runs.take(record)
    return runs


def output_of(record: Record) -> Output:
    """Return an output, or its update, as nbformat has it."""
    content, kind = record.content, record.kind
    if kind == "stream":
        name = record.text("name") or "stdout"
        return {"output_type": "stream", "name": name, "text": record.text("text")}
    if kind == "error":
        lines = content.get("traceback")
        lines = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
        names = {name: record.text(name) for name in ("ename", "evalue")}
        return {"output_type": "error", **names, "traceback": lines}
    is_result = kind == "execute_result"
    output: Output = {"output_type": kind if is_result else "display_data"}
    output |= {name: _object(record, name) for name in ("data", "metadata")}
    if is_result:
        output["execution_count"] = content.get("execution_count")
    return output


def _object(record: Record, name: str) -> dict[str, Any]:
    value = record.content.get(name)
    return value if isinstance(value, dict) else {}


def _display_id(record: Record) -> str:
    name = _object(record, "transient").get("display_id")
    return name if isinstance(name, str) else ""


def overwritten(text: str) -> str:
    """Return a stream's text as JupyterLab keeps it in a notebook, after its overwriting.

    A carriage return goes to the beginning of the line, and what follows overwrites it; a
    backspace removes the character before. A newline begins a line, also within one. Source:
    `processText` in JupyterLab 4's packages/outputarea/src/model.ts.
    """
    if "\r" not in text and "\b" not in text:
        return text
    above: list[str] = []
    line: list[str] = []
    at = begin = 0
    for control in re.finditer(r"[\n\b\r]", f"{text}\n"):
        piece = text[begin : control.start()]
        line[at : at + len(piece)] = piece
        at, begin = at + len(piece), control.end()
        if control[0] == "\b" and at:
            at -= 1
            del line[at]
        elif control[0] == "\r":
            at = 0
        elif control[0] == "\n":
            above.append("".join(line))
            line, at = [], 0
    return "\n".join(above)


def save_rich(output: Output, folder: Path, name: str) -> list[str]:
    """Write what an output has beside its text to new files of a folder; return their paths."""
    written = []
    for kind in filter(_SUFFIXES.get, output["data"]):
        value, suffix = output["data"][kind], _SUFFIXES[kind]
        text = "".join(map(str, value)) if isinstance(value, list) else str(value)
        with suppress(ValueError):  # it is not Base64
            is_text = suffix in (".svg", ".html")
            content = text.encode(errors="replace") if is_text else base64.b64decode(text)
            file = folder / local_name(name, suffix)
            paths.write_new(file, content)
            written.append(str(file))
    return written
