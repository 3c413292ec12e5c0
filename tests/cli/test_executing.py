"""What `jlr exec` passes on and prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jlremote.errors import Busy
from jlremote.jupyter.api import Kernel
from jlremote.kernels.execution import ExecPlace
from jlremote.output.recorded_files import Record
from tests.cli.conftest import Jlr, Workflows
from tests.output.parts import code, stream

PLACE = ExecPlace("dgx/cont1", Kernel("jlr-exec", "idle", "", "k"))
LATE = Busy("`run-1` goes on after 4m", hint="`jlr output -f dgx/cont1 run-1` shows the rest")


def told(*records: Record, error: Exception | None = None) -> Any:
    def each() -> Iterator[Record]:
        yield from records
        if error is not None:
            raise error

    return lambda *_: (PLACE, each())


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
