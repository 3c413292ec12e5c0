"""Copies of notebooks: each cell gets the outputs of its last run, and the file stays valid."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import JlrError
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.output import notebook_copy
from jlremote.output.reading import Recorded
from jlremote.output.recorded_files import Record
from jlremote.output.runs import Run, runs_of
from tests.output.parts import code, end, record, stream
from tests.stories.parts import context

Cell = dict[str, Any]


def cell(source: str, name: str | None = None, outputs: Any = ()) -> Cell:
    found: Cell = {"cell_type": "code", "metadata": {}, "source": source.splitlines(keepends=True)}
    found |= {"execution_count": None, "outputs": list(outputs)}
    return found if name is None else found | {"id": name}


def book(*cells: Cell) -> notebook_copy.Content:
    text = {"cell_type": "markdown", "metadata": {}, "source": ["# Title"], "id": "m"}
    return {"cells": [text, *cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def ran(source: str, printed: str, number: int, cell: str | None = None) -> list[Record]:
    where: dict[str, Any] = {"request": f"r{number}", "cell": cell, "time": float(number)}
    return [code(source, number, **where), stream(printed, **where), end(**where)]


def outputs(copy: notebook_copy.Copy) -> list[str | None]:
    cells = [each for each in copy.content["cells"] if each["cell_type"] == "code"]
    return ["".join(part["text"] for part in each["outputs"]) or None for each in cells]


def runs(*records: list[Record]) -> list[Run]:
    return runs_of([record for part in records for record in part]).all()


def test_a_cell_gets_the_outputs_of_its_last_run_also_if_its_code_has_changed() -> None:
    content = book(cell("new code", "c1"), cell("b", "c2"))
    copy = notebook_copy.filled(content, runs(ran("a", "1", 1, "c1"), ran("a", "2", 2, "c1")))
    assert outputs(copy) == ["2", None]
    assert copy.content["cells"][1]["execution_count"] == 2
    assert (copy.filled, copy.homeless) == (1, 0)


def test_without_an_id_a_cell_is_known_by_its_code_and_its_place() -> None:
    content = book(cell("show()"), cell("x\ny"), cell("show()"), cell("show()"))
    order = runs(
        ran("show()", "1", 1), ran("x\ny", "2", 2), ran("show()", "3", 3), ran("gone", "4", 4)
    )
    copy = notebook_copy.filled(content, order)
    assert outputs(copy) == ["1", "2", "3", None]
    assert (copy.filled, copy.homeless) == (3, 1)
    again = notebook_copy.filled(copy.content, runs(ran("show()", "5", 5)))
    assert outputs(again) == ["5", "2", "3", None]


def test_the_file_is_as_nbformat_writes_it() -> None:
    told = ran("print()", "a\nb\r\n50%\r100%\n", 1, "c1")
    told[2:2] = [
        record(
            "execute_result", {"data": {"text/plain": "1\n2", "application/json": {"a": "b\n"}}}
        ),
        record("error", {"ename": "É", "evalue": "\ud800", "traceback": ["a", "b"]}),
    ]
    copy = notebook_copy.filled(book(cell("print()", "c1")), runs(told))
    written = notebook_copy.text(copy.content)
    assert written.endswith(b"\n}\n")
    found = json.loads(written)["cells"][1]["outputs"]
    assert found[0] == {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n", "100%\n"]}
    assert found[1]["data"] == {"text/plain": ["1\n", "2"], "application/json": {"a": "b\n"}}
    assert (found[2]["ename"], found[2]["evalue"]) == ("É", "?")
    assert json.loads(written)["cells"][0]["source"] == ["# Title"]
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.reads(written.decode(), as_version=4))
    assert (
        nbformat.writes(nbformat.reads(written.decode(), as_version=4)) + "\n" == written.decode()
    )


def test_without_its_file_a_notebook_has_what_was_run() -> None:
    content = notebook_copy.of_runs(
        runs(ran("a", "1", 1), ran("b", "2", 2), ran("a", "3", 3))
    ).content
    assert [each["source"] for each in content["cells"]] == ["a", "b"]
    assert [each["outputs"][0]["text"] for each in content["cells"]] == ["3", "2"]


@given(
    st.binary()
    | st.recursive(
        st.none() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["cells", "a"]), x),
    ).map(lambda x: json.dumps(x).encode())
)
def test_what_is_no_notebook_is_no_traceback(text: bytes) -> None:
    with contextlib.suppress(JlrError):
        content = notebook_copy.read(text, "x.ipynb")
        assert notebook_copy.filled(content, runs(ran("a", "1", 1))).homeless == 1


def test_a_file_that_is_no_notebook_is_named() -> None:
    with pytest.raises(JlrError, match=r"`x\.ipynb` is not a notebook of format 4"):
        notebook_copy.read(b'{"worksheets": []}', "x.ipynb")


def test_what_was_run_after_the_last_save_brings_its_code() -> None:
    order = runs(ran("old", "1", 1), ran("newer", "2", 5, "c1"), ran("typed", "3", 6, "c9"))
    copy = notebook_copy.filled(book(cell("new", "c1")), order, saved_at=4.0)
    assert [each["source"] for each in copy.content["cells"][1:]] == ["newer", "typed"]
    assert outputs(copy) == ["2", "3"]
    assert copy.content["cells"][2]["id"] == "c9"
    assert (copy.filled, copy.homeless) == (2, 1)


def test_cells_with_missing_output_are_counted() -> None:
    content = book(cell("a", "c1"), cell("b", "c2"))
    lost = record("lost", {"from": 1.0, "until": 1.5, "why": "bound"}, request="")
    told = runs_of([*ran("a", "1", 1, "c1"), *ran("b", "2", 2, "c2"), lost]).all()
    assert notebook_copy.filled(content, told).incomplete == 1


def test_the_cells_of_exec_are_saved_only_where_no_notebook_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook_copy, "_fetch", lambda *_: None)
    mine, other = runs(ran("1", "a", 1)), runs(ran("2", "b", 2))
    other[0].notebook = "jlr-exec"
    session, host = SessionRecord("dgx", "cont1", "docker", 8888), cast("Link", None)
    for recorded, name in ((mine + other, "a.ipynb"), (other, "jlr-exec")):
        found = Recorded(session, host, recorded, [])
        copy = tmp_path / f"{name}.copy"
        assert notebook_copy.save(found, copy, context(), force=False).notebook == name
