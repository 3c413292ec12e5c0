"""Runs as text: progress bars, colours, clearing, updates."""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.output.recorded_files import Record
from jlremote.output.runs import overwritten, runs_of
from jlremote.output.view import Live, ending, heading, lines_of, shown
from tests.output.parts import code, end, record, stream

SIGNS = ["\x1b[", "A", "B", "C", "K", "m", "9999999", "1", ";", "\r", "\b", "\n", "\x1b]52;c;", "é"]
_TEXT = st.text(st.characters(exclude_characters=[chr(sign) for sign in range(0x80, 0xA0)]))
WRITTEN = st.lists(st.sampled_from([*SIGNS, "abc", "\x07", "\x1b[2K", "\x1b[A"]) | _TEXT).map(
    "".join
)
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


def output(*records: Record) -> list[str]:
    (run,) = runs_of(records).all()
    run.settle()
    return lines_of(run.outputs)


@given(WRITTEN)
def test_no_text_drives_the_terminal(text: str) -> None:
    for line in shown(text):
        assert all(
            sign.isprintable() or sign == "\t" or not sign.isascii()
            for sign in COLOUR.sub("", line)
        )
        assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", COLOUR.sub("", line))
        last = ["\x1b[0m", *COLOUR.findall(line)][-1]
        assert re.fullmatch(r"\x1b\[[0;]*m", last), "its colours end with the line"


@given(st.lists(st.text("abc é", max_size=20)), st.lists(st.integers(0, 10_000), min_size=1))
def test_plain_lines_stay_as_they_are_and_a_progress_bar_is_one_line(
    lines: list[str], steps: list[int]
) -> None:
    bar = "".join(f"\r{step:>6} of 10000" for step in steps)
    assert shown("".join(f"{line}\n" for line in lines) + bar) == [*lines, bar[-15:].lstrip("\r")]
    assert overwritten(bar) == f"{steps[-1]:>6} of 10000"


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        ("\x1b[31mred\nstill\x1b[0m plain", ["\x1b[31mred\x1b[0m", "\x1b[31mstill\x1b[0m plain"]),
        ("abcdef\rxy", ["xy"]),
        ("abcdef\r\x1b[Kxy\n\x1b[A\x1b[1Gz", ["xy", "z"]),
        ("\x1b[1mbold\r\x1b[0mnot\n", ["not"]),
        ("a\b\bb\r\nc", ["b", "c"]),
    ],
)
def test_a_line_is_overwritten_as_a_whole_and_its_colours_end_with_it(
    written: str, lines: list[str]
) -> None:
    assert shown(written) == lines


@pytest.mark.lab
def test_hostile_moves_take_neither_memory_nor_time() -> None:
    begun = time.process_time()
    assert len(shown("x" * 1_000_000 + "\b\x1b[1m" * 100_000)) == 1
    assert len(shown(("x" * 5000 + "\r") * 1000)) == 1
    assert len(shown("a\n" * 100_000)) == 100_000
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("a\rb\n", "b\n"),
        ("abc\r\nd", "abc\nd"),
        ("abc\rx\ny", "xbc\ny"),
        ("ab\b\b\bc\n\bd", "c\nd"),
        ("10%\r100%\rdone", "done"),
    ],
)
def test_overwritten_text_is_kept_as_jupyterlab_keeps_it(written: str, left: str) -> None:
    assert overwritten(written) == left


def test_streams_are_joined_and_results_shown_by_their_text() -> None:
    picture = {"data": {"text/plain": "<Figure>", "image/png": "AAAA"}, "metadata": {}}
    assert output(
        code("x"),
        stream("a"),
        stream("b\n"),
        stream("warning\n", name="stderr"),
        stream("no newline"),
        record("display_data", picture),
        record("execute_result", {"data": {"text/html": "<b>"}, "execution_count": 1}),
        record(
            "error",
            {"ename": "E", "evalue": "e", "traceback": ["\x1b[31mE\x1b[0m: e", "x\x1b]0;t\x07"]},
        ),
        end(),
    ) == ["ab", "warning", "no newline", "<Figure>", "<text/html>", "\x1b[31mE\x1b[0m: e", "x"]


def test_what_was_cleared_is_gone_and_updates_take_its_place() -> None:
    def shown_as(kind: str, text: str, **other: object) -> Record:
        content = {"data": {"text/plain": text}, "transient": {"display_id": "d"}}
        return record(kind, content | other)

    assert output(code("x"), stream("old"), record("clear_output", {"wait": False})) == []
    waits = record("clear_output", {"wait": True})
    assert output(code("x"), stream("old"), waits) == ["old"]
    of_widget = replace(waits, widget="w")
    assert output(code("x"), stream("old"), of_widget, stream("er")) == ["older"]
    assert output(code("x"), stream("old"), waits, stream("new"), stream("er")) == ["newer"]
    first = shown_as("display_data", "1 of 2")
    assert output(code("x"), first, stream("y"), shown_as("update_display_data", "2 of 2")) == [
        "2 of 2",
        "y",
    ]


@pytest.mark.parametrize("content", [{}, {"text": 5}, {"data": []}, {"data": {"text/plain": {}}}])
@pytest.mark.parametrize("kind", ["stream", "display_data", "error", "update_display_data", "code"])
def test_content_of_another_form_is_no_traceback(kind: str, content: dict[str, object]) -> None:
    (run,) = runs_of([record(kind, content)]).all()
    assert run.to_json()["outputs"] == run.saved_outputs()
    assert isinstance(lines_of(run.outputs), list)


def test_a_kernel_that_died_ends_its_run_and_what_was_lost_is_told() -> None:
    runs = runs_of([code("x", 3), record("kernel", {"state": "died"}, request="", time=5.0)])
    (run,) = runs.all()
    assert (run.status, run.ended) == ("died", 5.0)
    runs = runs_of([code("x", 3), record("lost", {"from": 1.0, "until": 2.0, "why": "bound"})])
    (run,) = runs.all()
    assert not run.complete
    assert ending(run, now=61.0) == "[3] running for 1m; output is missing"
    assert heading(run).startswith("a.ipynb [*], 1970-01-01 ")


@given(st.lists(WRITTEN, max_size=8), st.integers(0, 8))
def test_what_is_followed_is_what_is_shown_at_the_end(pieces: list[str], begun: int) -> None:
    records = [code("x"), *map(stream, pieces), end()]
    live = Live()
    lines = live.begin(records[:begun])
    for each in records[begun:]:
        lines += live.take(each)
    (run,) = runs_of(records).all()
    told = [line.text for line in lines if line.kind == "text"]
    run.settle()
    assert told == lines_of(run.outputs)


def test_two_cells_at_once_are_told_apart_while_followed() -> None:
    live = Live()
    lines = live.begin([])
    for at in range(3):
        for kernel, notebook in (("k1", "a.ipynb"), ("k2", "b.ipynb")):
            where: dict[str, Any] = {"kernel": kernel, "notebook": notebook, "request": kernel}
            if at == 0:
                lines += live.take(code("x", **where))
            lines += live.take(stream(f"{kernel} {at}\n", **where))
    text = [line.text for line in lines]
    assert [line for line in text if line.startswith("k")] == [
        *("k1 0", "k2 0", "k1 1", "k2 1", "k1 2", "k2 2")
    ]
    for before, after in itertools.pairwise(text):
        assert before[:1] != "k" or after[:1] != "k", "no heading between two notebooks"
