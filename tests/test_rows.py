"""docs/rows.md says which test shows what; every row is there, and so is every test it names."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
ROWS = re.compile(r"^\| ([ABDE]\d+) \|.*\|(.*)\|$", re.MULTILINE)
TEST = re.compile(r"`(\w+/\w+)::(test_\w+)`")
GUIDES = {"A": 10, "B": 11, "D": 6, "E": 13}


def rows() -> dict[str, str]:
    """Return what the last column says of each row."""
    return dict(ROWS.findall((REPOSITORY / "docs/rows.md").read_text()))


def test_every_row_of_the_guides_is_there() -> None:
    wanted = {f"{guide}{row + 1}" for guide, count in GUIDES.items() for row in range(count)}
    assert set(rows()) == wanted


def test_every_row_names_tests_and_each_of_them_exists() -> None:
    for row, column in rows().items():
        named = TEST.findall(column)
        assert named, f"{row} names no test"
        for place, test in named:
            source = (REPOSITORY / f"tests/{place}.py").read_text()
            assert f"\ndef {test}(" in source, f"{row} names {place}::{test}"
