"""The tables of docs/ whose last column names tests: rows of guides, attacks, and faults."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PAGES = ("rows", "security", "outages")
TEST = re.compile(r"`(\w+(?:/\w+)*::test_\w+)`")


def named_tests(page: str) -> dict[str, list[str]]:
    """Return the tests that each row of docs/`page`.md names, as `folder/test_file::test_name`.

    A row goes by its first cell. The heads of these tables end with `shown by`.
    """
    text = (REPOSITORY / f"docs/{page}.md").read_text(encoding="utf-8")
    tables = [block.splitlines() for block in text.split("\n\n")]
    rows = [row for head, *rows in tables if head.endswith("| shown by |") for row in rows[1:]]
    cells = [row.strip("| ").split(" | ") for row in rows]
    return {first: TEST.findall(last) for first, *_, last in cells}
