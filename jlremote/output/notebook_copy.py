"""`jlr output --save`: a copy of a notebook with the recorded outputs in its cells.

Source: nbformat 4, https://nbformat.readthedocs.io/en/latest/format_description.html; the file is
written as nbformat writes it, so that only what changed differs.
"""

from __future__ import annotations

import json
import math
import os
import posixpath
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.jupyter.scripts import session_directory
from jlremote.laptop import paths
from jlremote.output import recorded_files
from jlremote.output.reading import Recorded
from jlremote.output.runs import Run
from jlremote.place.runtimes.table import runtime_of
from jlremote.text import one_line
from jlremote.untrusted import Refused, document, local_name, moment

MOST_BYTES = 256 << 20
READ_SECONDS = 600.0

Cell = dict[str, Any]
Content = dict[str, Any]  # of a notebook

_EMPTY: Content = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
_JSON_KIND = re.compile(r"application/(.*\+)?json")


@dataclass(frozen=True)
class Copy:
    """A notebook with its outputs."""

    content: Content
    filled: int  # cells with the outputs of a run
    homeless: int = 0  # runs whose cell is gone
    incomplete: int = 0  # cells with a run of which some output was not recorded


@dataclass(frozen=True)
class Saved:
    """A copy that was written."""

    file: Path
    notebook: str  # its path below the server's root
    cells: int  # those that got the outputs of a run
    homeless: int  # runs of cells that the notebook has not any more
    incomplete: int  # cells some of whose output was not recorded

    def to_json(self) -> dict[str, object]:
        return vars(self) | {"file": str(self.file)}


def check_destination(copy: Path, *, force: bool) -> None:
    """Check early that a copy can be written; raise `Usage` if the file exists, or no folder."""
    if copy.is_dir():  # the notebook's name is the host's
        return
    if os.path.lexists(copy) and not force:
        named = f"--save {shlex.quote(str(copy))} --force"
        raise Usage(f"`{copy}` exists", hint=f"`{named}` overwrites it")
    if not copy.parent.is_dir():
        hint = f"`mkdir -p {shlex.quote(str(copy.parent))}` makes it"
        raise Usage(f"there is no folder `{copy.parent}`", hint=hint)


def save(recorded: Recorded, copy: Path, context: Context, *, force: bool) -> Saved:
    """Write a copy of the notebook, or of that of the latest run where several are recorded.

    Where `copy` is a folder the far side names the file, so nothing is overwritten there, whatever
    `force` says. Raise `NotFound` if no cell of a notebook has run, `Usage` if the file exists.
    """
    names = [run.notebook for run in recorded.runs if run.notebook]
    if not names:
        raise NotFound("no cell of a notebook has run", hint="`jlr output` shows what was recorded")
    *_, name = [each for each in names if each.endswith(".ipynb")] or names
    if len(set(names)) > 1:
        context.progress.note(f"copying `{one_line(name)}`, which ran last")
    runs = [run for run in recorded.runs if run.notebook == name]
    if copy.is_dir():
        copy, force = copy / local_name(posixpath.basename(name), ".ipynb"), False
    check_destination(copy, force=force)
    with context.progress.step(f"Copy {one_line(name)}"):
        if original := _fetch(recorded, name):
            saved_at, data = original
            made = filled(read(data, one_line(name)), runs, saved_at)
        else:
            why = "cannot be read there, so the copy has only the cells that ran"
            context.progress.note(f"`{one_line(name)}` {why}")
            made = of_runs(runs)
        if force:
            paths.write_whole(copy, text(made.content), mode=0o666)
        else:
            paths.write_new(copy, text(made.content))
    return Saved(copy, name, made.filled, made.homeless, made.incomplete)


def _fetch(recorded: Recorded, name: str) -> tuple[float, bytes] | None:
    session, runtime = recorded.session, runtime_of(recorded.session)
    script = session_directory(runtime, session.name) + recorded_files.notebook(name)
    ways = [runtime.beside(session.name, script)]
    if runtime.in_jobs:  # its job may have ended
        ways.append(runtime.inside(session.name, script))
    inside = {"read": " || ".join(f"( {way} )" for way in ways)}
    done = recorded.host.run(inside, timeout=READ_SECONDS, limit=MOST_BYTES)["read"]
    date, _, data = done.stdout.partition("\n")
    if done.status != 0 or (saved_at := moment(date)) is None:
        return None
    return saved_at, data.encode("utf-8", "surrogateescape")


def read(data: bytes, name: str) -> Content:
    """Return the notebook in a file; raise `JlrError` if there is none of nbformat 4."""
    try:
        content = document(data)
    except Refused:
        content = None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise JlrError(f"`{name}` is not a notebook of format 4")
    return dict(content)


def code_cells(data: bytes, name: str) -> list[str]:
    """Return the code of each code cell of a notebook's file."""
    cells = [cell for cell in read(data, name)["cells"] if cell.get("cell_type") == "code"]
    return [source for cell in cells if (source := _source(cell)).strip()]


def _source(cell: Cell) -> str:
    source = cell.get("source")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def filled(content: Content, runs: Sequence[Run], saved_at: float = math.inf) -> Copy:
    """Put the outputs of the last run of each cell into a notebook; other cells stay.

    Runs that began after it was saved, at `saved_at` in seconds since the epoch, bring their code.
    """
    cells = [cell for cell in content["cells"] if cell.get("cell_type") == "code"]
    last: dict[int, Run] = {}
    unsaved: list[Run] = []
    latest, homeless = -1, 0
    for run in runs:
        at = _cell_of(run, cells, latest)
        if at is not None:
            latest = at
            last[at] = run
        elif run.started > saved_at and run.code is not None:
            unsaved.append(run)
        else:
            homeless += 1
    new = {}
    for at, run in last.items():
        is_newer = run.started > saved_at and run.code is not None
        source = {"source": run.code} if is_newer else {}
        new[id(cells[at])] = _with_outputs({**cells[at], **source}, run)
    changed = [new.get(id(cell), cell) for cell in content["cells"]]
    added = of_runs(unsaved, content)
    incomplete = sum(not run.complete for run in last.values()) + added.incomplete
    whole = {**content, "cells": changed + added.content["cells"]}
    return Copy(whole, len(last) + added.filled, homeless, incomplete)


def of_runs(runs: Sequence[Run], like: Content = _EMPTY) -> Copy:
    """Return a notebook with a cell for each code that ran."""
    last = {run.cell or run.code: run for run in runs if run.code is not None}
    cells = []
    for run in last.values():
        cell: Cell = {"cell_type": "code", "metadata": {}, "source": run.code}
        if like.get("nbformat_minor", 0) in range(5, 100):
            cell["id"] = run.cell or f"run-{run.count}-{round(run.started)}"
        cells.append(_with_outputs(cell, run))
    incomplete = sum(not run.complete for run in last.values())
    return Copy({**like, "cells": cells}, len(cells), incomplete=incomplete)


def _cell_of(run: Run, cells: Sequence[Cell], before: int) -> int | None:
    """Return which cell a run is of: by its id, else the next one of its code."""
    for at, cell in enumerate(cells):
        if run.cell and cell.get("id") == run.cell:
            return at
    same = [at for at, cell in enumerate(cells) if _source(cell) == run.code]
    return next((at for at in same if at > before), same[0] if same else None)


def _with_outputs(cell: Cell, run: Run) -> Cell:
    return {**cell, "execution_count": run.count, "outputs": run.saved_outputs()}


def text(content: Content) -> bytes:
    """Return the file of a notebook, with long texts as lists of lines."""
    cells = []
    for cell in content["cells"]:
        outputs = [_split_output(output) for output in cell.get("outputs", ())]
        own = {"outputs": outputs} if "outputs" in cell else {}
        cells.append({**cell, "source": _lines(cell.get("source")), **own})
    whole = json.dumps({**content, "cells": cells}, ensure_ascii=False, indent=1, sort_keys=True)
    # What is no text in UTF-8 came from a program that printed it so.
    return f"{whole}\n".encode(errors="replace")


def _split_output(output: Any) -> Any:
    if not isinstance(output, dict):
        return output
    if "text" in output:
        return {**output, "text": _lines(output["text"])}
    if isinstance(data := output.get("data"), dict):
        kinds = {
            kind: value if _JSON_KIND.fullmatch(kind) else _lines(value)
            for kind, value in data.items()
        }
        return {**output, "data": kinds}
    return output


def _lines(value: Any) -> Any:
    return value.splitlines(keepends=True) if isinstance(value, str) else value
