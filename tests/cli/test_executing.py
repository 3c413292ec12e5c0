"""What `jlr exec` passes on and prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import Busy
from jlremote.jupyter.api import Kernel
from jlremote.kernels.execution import ExecPlace
from jlremote.output.recorded_files import Record
from tests.cli.conftest import Jlr, Workflows
from tests.output.parts import code, record, stream

PLACE = ExecPlace("dgx/cont1", Kernel("jlr-exec", "idle", "", "k"))
FAILED = record("error", {"ename": "E", "evalue": "e", "traceback": ["\x1b[31mE\x1b[0m: e"]})
PICTURE = record("display_data", {"data": {"text/plain": "<Figure>", "image/png": "aGk="}})
LATE = Busy("`run-1` goes on after 4m", hint="`jlr output -f dgx/cont1 run-1` shows the rest")


def told(*records: Record, error: Exception | None = None) -> Any:
    def each() -> Iterator[Record]:
        yield from records
        if error is not None:
            raise error

    return lambda *_: (PLACE, each())


def test_it_prints_as_a_program_does_and_fails_with_the_code(
    jlr: Jlr, workflows: Workflows
) -> None:
    err, result = (
        stream("w\n", name="stderr"),
        record("execute_result", {"data": {"text/plain": "4"}}),
    )
    failed = record("end", {"status": "error"})
    records = (code("x", 3), stream("a\rb\n"), err, result, FAILED, failed)
    workflows.will("kernels.execution.execute", told(*records))
    outcome = jlr("exec", "cont1", "-c", "x", "--timeout", "4m", "--no-wait")
    assert (outcome.code, outcome.stdout, outcome.stderr) == (1, "a\rb\n4\n", "w\nE: e\n")
    request, _ = workflows.arguments("kernels.execution.execute")
    assert (request.selector, request.cells, request.seconds) == ("cont1", ["x"], 240)
    assert (request.waits, request.asks) == (False, False)
    interrupted = record("error", {"ename": "KeyboardInterrupt", "evalue": "", "traceback": []})
    workflows.will("kernels.execution.execute", told(interrupted, failed))
    assert jlr("exec", "-c", "x").code == 130


def test_an_object_has_no_pictures_and_is_printed_also_before_an_error(
    jlr: Jlr, workflows: Workflows, tmp_path: Path
) -> None:
    workflows.will("kernels.execution.execute", told(code("x", 3), PICTURE, error=LATE))
    outcome = jlr("exec", "-c", "x", "--json")
    found = json.loads(outcome.stdout)
    assert outcome.code == 7
    assert json.loads(outcome.stderr)["hint"] == LATE.hint
    assert (found["status"], found["execution_count"], found["kernel"]) == ("running", 3, "k")
    assert found["outputs"][0]["data"] == {"text/plain": "<Figure>"}
    assert found["truncated"] == "jlr output dgx/cont1 r1 --json"
    again = json.loads(jlr("exec", "-c", "x", "--json", "--out", str(tmp_path)).stdout)
    assert (again["truncated"], again["files"]) == (None, [f"{tmp_path}/r1-1.png"])
    assert (tmp_path / "r1-1.png").read_bytes() == b"hi"
    workflows.will("kernels.execution.execute", told(error=LATE))
    assert json.loads(jlr("exec", "-c", "x", "--json").stdout)["run"] is None


def test_events_are_a_line_each_and_an_error_is_an_object(jlr: Jlr, workflows: Workflows) -> None:
    workflows.will("kernels.execution.execute", told(code("x", 3), stream("a"), error=LATE))
    outcome = jlr("exec", "-c", "x", "--json-lines")
    first, second = map(json.loads, outcome.stdout.splitlines())
    assert (first["event"], first["name"], first["content"]["execution_count"]) == (
        "code",
        "cont1",
        3,
    )
    assert second == {"event": "stream", "run": "r1", "content": {"name": "stdout", "text": "a"}}
    assert json.loads(outcome.stderr)["exit"] == 7


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ((), 2, "one of `-c CODE` and FILE is needed"),
        (("cont1", "x.py", "-c", "1"), 2, "one of `-c CODE` and FILE is needed"),
        (("x.py",), 6, "cannot read `x.py`: no such file"),
        (("-c", "1", "--out", "missing"), 2, "`missing` does not exist"),
        (("-c", "1", "--timeout", "soon"), 2, "`--timeout`"),
    ],
)
def test_what_cannot_be_run_is_told(
    jlr: Jlr, words: tuple[str, ...], status: int, message: str
) -> None:
    outcome = jlr("exec", *words)
    assert (outcome.code, message in outcome.stderr) == (status, True), outcome


def test_a_file_that_is_no_code_is_told(jlr: Jlr, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xff")
    (tmp_path / "a.ipynb").write_text("{}")
    assert "is not text in UTF-8" in jlr("exec", str(tmp_path / "a.py")).stderr
    assert "is not a notebook of format 4" in jlr("exec", str(tmp_path / "a.ipynb")).stderr
