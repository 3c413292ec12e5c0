"""The tables of docs/ are whole, and name tests of this tree for each row.

That each of them ran and passed is for `tests/run` to say (`tests/verdict.py`).
"""

from __future__ import annotations

import re

import pytest

from tests.rows import PAGES, REPOSITORY, named_tests, rows

GUIDES = {"A": 10, "B": 11, "D": 6, "E": 13}
# The rows of the guide to an HPC centre that jlr replaces so far.
CLUSTER = {"C1", "C2", "C3", "C4", "C5", "C6", "C7"}
SECONDS = re.compile(r"\d s\b")


def test_every_row_of_the_guides_is_there() -> None:
    wanted = {f"{guide}{row + 1}" for guide, count in GUIDES.items() for row in range(count)}
    assert set(named_tests("rows")) == wanted | CLUSTER
    guides = (REPOSITORY / "docs/guides.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| ([A-E]\d+) \|", guides, re.MULTILINE)) == wanted | CLUSTER


@pytest.mark.parametrize("page", ["security", "outages"])
def test_thirty_attacks_and_thirty_faults_are_kept(page: str) -> None:
    kept = {test for tests in named_tests(page).values() for test in tests}
    assert len([test for test in kept if test.startswith("adversity/")]) >= 30


def test_every_fault_has_a_bound_in_time() -> None:
    assert [row[0] for row in rows("outages") if not SECONDS.search(row[2])] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_row_stands_once_with_the_cells_of_its_table(page: str) -> None:
    cells = {len(row) for row in rows(page)}
    assert len(cells) == 1
    assert len(named_tests(page)) == len(rows(page))


@pytest.mark.parametrize("page", PAGES)
def test_every_row_names_tests_of_this_tree(page: str) -> None:
    for row, tests in named_tests(page).items():
        assert tests, f"{row} names no test"
        for test in tests:
            file, _, name = test.partition("::")
            text = (REPOSITORY / f"tests/{file}.py").read_text(encoding="utf-8")
            assert f"\ndef {name}(" in text, f"{row} names {test}"
