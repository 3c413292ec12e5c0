"""What the pages show: tables whose last column names tests, and commands that tests run."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PAGES = ("rows", "security", "outages")
TEST = re.compile(r"`(\w+(?:/\w+)*::test_\w+)`")


def named_tests(page: str) -> dict[str, list[str]]:
    """Return the tests, as `folder/test_file::test_name`, by the first cell of their row."""
    return {first: TEST.findall(last) for first, *_, last in rows(page)}


def rows(page: str) -> list[list[str]]:
    """Return the cells of each row of docs/`page`.md, of its tables that end with `shown by`."""
    text = (REPOSITORY / f"docs/{page}.md").read_text(encoding="utf-8")
    tables = [block.splitlines() for block in text.split("\n\n")]
    found = [row for head, *rest in tables if head.endswith("| shown by |") for row in rest[1:]]
    return [row.strip("| ").split(" | ") for row in found]


def shown_commands() -> list[str]:
    """Return the commands of README.md's blocks, and those of docs/guides.md, each once."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    guides = (REPOSITORY / "docs/guides.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^    (.*?)(?: +#.*)?$", readme, re.MULTILINE)
    lines = [command for block in blocks for command in block.split("; ")]
    inline = [one for one in re.findall(r"`(jlr [^`]*)`", guides) if "…" not in one]
    return list(dict.fromkeys(lines + inline))
