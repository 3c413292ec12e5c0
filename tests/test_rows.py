"""docs/rows.md has every row of the guides, and names tests for each.

That each of them ran and passed is for `tests/run` to say (`tests/verdict.py`).
"""

from __future__ import annotations

import ast

from tests.rows import REPOSITORY, named_tests

GUIDES = {"A": 10, "B": 11, "D": 6, "E": 13}


def test_every_row_of_the_guides_is_there() -> None:
    wanted = {f"{guide}{row + 1}" for guide, count in GUIDES.items() for row in range(count)}
    assert set(named_tests()) == wanted


def test_every_row_names_tests_of_this_tree() -> None:
    for row, tests in named_tests().items():
        assert tests, f"{row} names no test"
        for test in tests:
            file, _, name = test.partition("::")
            source = ast.parse((REPOSITORY / f"tests/{file}.py").read_text(encoding="utf-8"))
            there = {node.name for node in source.body if isinstance(node, ast.FunctionDef)}
            assert name in there, f"{row} names {test}"
