"""A copy of a notebook with the recorded outputs in its cells.

Source: nbformat 4, https://nbformat.readthedocs.io/en/latest/format_description.html; the file is
written as nbformat writes it, so that only what changed differs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jlremote.errors import JlrError
from jlremote.output.runs import Run
from jlremote.untrusted import Refused, document

Cell = dict[str, Any]
Content = dict[str, Any]  # of a notebook


_EMPTY: Content = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}


@dataclass(frozen=True)
class Copy:
    """A notebook with its outputs."""

    content: Content
    filled: int  # cells with the outputs of a run
    homeless: int = 0  # runs whose cell is gone
    incomplete: int = 0  # cells with a run of which some output was not recorded


def read(text: bytes, name: str) -> Content:
    """Return the notebook in a file.

    Raises:
        JlrError: it is none, or of a format before nbformat 4.
    """
    try:
        content = document(text)
    except Refused:
        content = None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise JlrError(f"`{name}` is not a notebook of format 4")
    return dict(content)


def filled(content: Content, runs: Sequence[Run], saved_at: float = math.inf) -> Copy:
    """Put the outputs of the last run of each cell into a notebook; other cells stay.

    Runs that began after it was saved, at `saved_at` in seconds since the epoch, bring their code.
    """
    cells = [cell for cell in content["cells"] if cell.get("cell_type") == "code"]
    last: dict[int, Run] = {}
    unsaved: list[Run] = []
    place, homeless = -1, 0
    for run in runs:
        found = _place(run, cells, place)
        if found is not None:
            place = found
            last[found] = run
        elif run.started > saved_at and run.code is not None:
            unsaved.append(run)
        else:
            homeless += 1
    new = {id(cells[at]): _run_cell(cells[at], run, saved_at) for at, run in last.items()}
    changed = [new.get(id(cell), cell) for cell in content["cells"]]
    added = of_runs(unsaved, content)
    return Copy(
        {**content, "cells": changed + added.content["cells"]},
        len(last) + added.filled,
        homeless,
        _incomplete(last.values()) + added.incomplete,
    )


def of_runs(runs: Sequence[Run], like: Content = _EMPTY) -> Copy:
    """Return a notebook of what was run, where its own file is not there: a cell for each code."""
    last: dict[str, Run] = {}
    for run in runs:
        if run.code is not None:
            last[run.cell or run.code] = run
    cells = []
    for run in last.values():
        cell: Cell = {"cell_type": "code", "metadata": {}, "source": run.code}
        if like.get("nbformat_minor", 0) in range(5, 100):
            cell["id"] = run.cell or f"run-{run.count}-{round(run.started)}"
        cells.append(_with_outputs(cell, run))
    return Copy({**like, "cells": cells}, len(cells), incomplete=_incomplete(last.values()))


def _incomplete(runs: Iterable[Run]) -> int:
    return sum(not run.complete for run in runs)


def _run_cell(cell: Cell, run: Run, saved_at: float) -> Cell:
    if run.started > saved_at and run.code is not None:
        cell = {**cell, "source": run.code}
    return _with_outputs(cell, run)


def _place(run: Run, cells: Sequence[Cell], before: int) -> int | None:
    """Return which cell a run is of: by its id, else the next one of its code."""
    if run.cell is not None:
        for at, cell in enumerate(cells):
            if cell.get("id") == run.cell:
                return at
    if run.code is None:
        return None
    same = [at for at, cell in enumerate(cells) if _source(cell) == run.code]
    return next((at for at in same if at > before), same[0] if same else None)


def _with_outputs(cell: Cell, run: Run) -> Cell:
    return {**cell, "execution_count": run.count, "outputs": run.saved_outputs()}


def _source(cell: Cell) -> str:
    source = cell.get("source")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def text(content: Content) -> bytes:
    """Return the file of a notebook, with long texts as lists of lines."""
    cells = [_split(cell) for cell in content["cells"]]
    whole = json.dumps({**content, "cells": cells}, ensure_ascii=False, indent=1, sort_keys=True)
    # What is no text in UTF-8 came from a program that printed it so.
    return f"{whole}\n".encode(errors="replace")


def _split(cell: Cell) -> Cell:
    cell = {**cell, "source": _lines(cell.get("source"))}
    if "outputs" in cell:
        cell["outputs"] = [_split_output(output) for output in cell["outputs"]]
    return cell


def _split_output(output: Any) -> Any:
    if not isinstance(output, dict):
        return output
    if "text" in output:
        return {**output, "text": _lines(output["text"])}
    if isinstance(data := output.get("data"), dict):
        json_kind = re.compile(r"application/(.*\+)?json")
        split = {
            kind: value if json_kind.fullmatch(kind) else _lines(value)
            for kind, value in data.items()
        }
        return {**output, "data": split}
    return output


def _lines(value: Any) -> Any:
    return value.splitlines(keepends=True) if isinstance(value, str) else value
