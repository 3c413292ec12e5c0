"""What `jlr output` and `jlr exec` pass on and print: text, JSON, lines that are being written."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from jlremote.cli.screen.program_output import CellOutput
from jlremote.cli.screen.terminal import set_colour, tell
from jlremote.errors import Busy
from jlremote.jupyter.api import Kernel
from jlremote.kernels.execution import ExecPlace
from jlremote.output.notebook_copy import Saved
from jlremote.output.recorded_files import Record
from jlremote.output.runs import runs_of
from jlremote.output.view import Line
from tests.cli.conftest import Jlr, Workflows
from tests.cli.terminal import printed
from tests.output.parts import code, end, record, stream

FAILED = record(
    "error", {"ename": "E", "evalue": "e", "traceback": ["\x1b[38;5;9mE\x1b[0m: e\x1b]0;title\x07"]}
)
RECORDS = (code("for x in data:\n  fit(x)", 7), stream("\r 10%\r 99%\n"), FAILED, end(time=62.0))


def found(*records: Record) -> Any:
    runs = runs_of(records)
    return SimpleNamespace(runs=runs.all(), lost=runs.lost)


def test_each_run_has_a_heading_its_output_and_how_it_ended(jlr: Jlr, workflows: Workflows) -> None:
    gone = record("lost", {"from": None, "until": 3.0, "why": "bound"}, request="", time=70.0)
    workflows.will("output.reading.recorded", found(*RECORDS, gone))
    outcome = jlr("output", "cont1", "a.ipynb")
    heading, *lines = outcome.stdout.splitlines()
    assert heading.startswith("a.ipynb [7], 1970-01-01 ")
    assert heading.endswith(", for x in data:")
    assert lines[:3] == [" 99%", "E: e", "[7] ok after 1m1s; output is missing"]
    assert lines[3].startswith("output is missing from ? to 1970-01-01 ")
    assert workflows.arguments("output.reading.recorded")[:2] == ("cont1", "a.ipynb")
    for count in (0, 1, 2, 9):
        last = jlr("output", "cont1", "--tail", str(count)).stdout.splitlines()
        assert last == outcome.stdout.splitlines()[max(0, 5 - count) :]
        told = json.loads(jlr("output", "cont1", "--tail", str(count), "--json").stdout)
        assert len(told) == min(count, 1)


def test_json_is_an_object_for_each_run(jlr: Jlr, workflows: Workflows) -> None:
    workflows.will("output.reading.recorded", found(*RECORDS))
    [told] = json.loads(jlr("output", "--json").stdout)
    assert told["outputs"][0] == {"output_type": "stream", "name": "stdout", "text": " 99%\n"}
    del told["outputs"]
    assert told == {
        "run": "r1",
        "notebook": "a.ipynb",
        "cell": "c1",
        "kernel": "k",
        "code": "for x in data:\n  fit(x)",
        "execution_count": 7,
        "started": "1970-01-01T00:00:01Z",
        "ended": "1970-01-01T00:01:02Z",
        "status": "ok",
        "complete": True,
    }


def test_followed_runs_are_a_line_each_once_they_have_ended(jlr: Jlr, workflows: Workflows) -> None:
    second = (code("2", 8, request="r2"), stream("x", request="r2"), end(request="r2"))
    workflows.will("output.reading.followed", iter([*RECORDS, None, *second, code("3")]))
    lines = jlr("output", "-f", "--json").stdout.splitlines()
    assert [json.loads(line)["execution_count"] for line in lines] == [7, 8]


@pytest.mark.parametrize(("status", "exit_code"), [("ok", 0), ("error", 1)])
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_run_that_is_followed_to_its_end_gives_its_exit_code(
    jlr: Jlr, workflows: Workflows, status: str, exit_code: int, flags: tuple[str, ...]
) -> None:
    ends, run = record("end", {"status": status}), "run-0123456789ab"
    for records in ((code("1"), None, ends), (code("1"), ends, stream("late\n"), None)):
        workflows.will("output.reading.followed", iter(records))
        assert jlr("output", "-f", run, *flags).code == exit_code
    assert {call[1][:2] for call in workflows.calls if "followed" in call[0]} == {(None, run)}


def test_a_pipe_gets_whole_lines_only(jlr: Jlr, workflows: Workflows) -> None:
    more = (stream("\r 20%"), None, stream("\r 30%"), stream("\rdone\nnext"))
    workflows.will("output.reading.followed", iter([code("1"), *more]))
    assert jlr("output", "-f").stdout.splitlines()[1:] == ["done"]


def test_a_copy_is_told_with_what_is_in_it(jlr: Jlr, workflows: Workflows, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ipynb"
    workflows.will("output.reading.recorded", found(*RECORDS))
    workflows.will("output.notebook_copy.save", Saved(copy, "work/a.ipynb", 2, 3, 1))
    outcome = jlr("output", "--save", str(copy))
    assert outcome.stdout == f"`{copy}` is `work/a.ipynb` with the outputs of 2 cells\n"
    assert "some output of 1 of them was not recorded" in outcome.stderr
    assert "3 further runs" in outcome.stderr
    told = json.loads(jlr("output", "--save", str(copy), "--json").stdout)
    counts = {"cells": 2, "homeless": 3, "incomplete": 1}
    assert told == {"file": str(copy), "notebook": "work/a.ipynb"} | counts


WATCHED = """
from jlremote.cli.screen.program_output import CellOutput
from jlremote.cli.screen.terminal import set_colour, tell
from jlremote.output.view import Live
from tests.output.parts import code, end, record, stream

live, screen = Live(), CellOutput()
screen.show(live.begin([code("1")]))
done = "\\r\\x1b[Kdone \\x1b[31m!\\x1b[0m\\x1b]0;title\\x07\\n"
for text in ("\\r 10%", "\\r" + 200 * "#", done, "."):
    each = stream(text)
    screen.show(live.take(each), live.current)
screen.show(live.take(end()))
print("over")
"""


def test_a_terminal_has_the_line_that_is_written_drawn_over() -> None:
    drawn = printed(WATCHED, TERM="xterm-256color", NO_COLOR="").partition("\n")[2]
    assert drawn == (
        f" 10%\r\x1b[K{'#' * 79}\r\x1b[Kdone \x1b[31m!\x1b[0m\n.\r\x1b[K.\n"
        "\x1b[2m[1] ok after 0s\x1b[0m\nover\n"
    )


def test_signs_that_the_output_lacks_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(binary := io.BytesIO(), "latin-1"))
    CellOutput().show([Line("text", "é ✓ \udc80")])
    assert binary.getvalue() == b"\xe9 ? \\x80\n"


@pytest.mark.parametrize(
    ("variables", "when", "printed"),
    [
        ({}, "auto", "✓ a… → b"),
        ({"FORCE_COLOR": "1"}, "auto", "\x1b[32m✓\x1b[0m a… → b"),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", "✓ a… → b"),
        ({"FORCE_COLOR": "1"}, "never", "✓ a… → b"),
        ({"NO_COLOR": "1"}, "always", "\x1b[32m✓\x1b[0m a… → b"),
        ({"LC_ALL": "C"}, "auto", "+ a... -> b"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "auto", "+ a... -> b"),  # as Python coerces it
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, "auto", "✓ a… → b"),
        ({"LC_CTYPE": "C.UTF-8"}, "auto", "✓ a… → b"),
    ],
)
def test_colours_and_signs_are_those_that_the_environment_wants(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], when: str, printed: str
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.setenv(name, variables.get(name, ""))
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(binary := io.BytesIO(), "utf-8"))
    set_colour(when)
    tell(f"{click.style('✓', fg='green')} a… → b")
    assert binary.getvalue().decode() == f"{printed}\n"


PLACE = ExecPlace("dgx/cont1", Kernel("jlr-exec", "idle", "", "k"))
LATE = Busy("`run-1` goes on after 4m", hint="`jlr output -f dgx/cont1 run-1` shows the rest")


def test_events_are_a_line_each_and_an_error_is_an_object(jlr: Jlr, workflows: Workflows) -> None:
    def records() -> Iterator[Record]:
        yield from (code("x", 3), stream("a"))
        raise LATE

    workflows.will("kernels.execution.execute", (PLACE, records()))
    outcome = jlr("exec", "-c", "x", "--json-lines")
    first, second = map(json.loads, outcome.stdout.splitlines())
    assert (first["event"], first["name"]) == ("code", "cont1")
    assert first["content"]["execution_count"] == 3
    assert second == {"event": "stream", "run": "r1", "content": {"name": "stdout", "text": "a"}}
    assert json.loads(outcome.stderr)["exit"] == 7
