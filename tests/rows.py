"""The rows of docs/rows.md: what people do by hand, and the tests that show jlr doing it."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
ROW = re.compile(r"^\| ([ABDE]\d+) \|.*\|(.*)\|$", re.MULTILINE)
TEST = re.compile(r"`(\w+(?:/\w+)+::test_\w+)`")


def named_tests() -> dict[str, list[str]]:
    """Return the tests that each row names, as `folder/test_file::test_name`."""
    text = (REPOSITORY / "docs/rows.md").read_text(encoding="utf-8")
    return {row: TEST.findall(column) for row, column in ROW.findall(text)}
