"""ARCHITECTURE.md is short, and names only modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PAGE = (REPOSITORY / "ARCHITECTURE.md").read_text("utf-8")
FILES = {
    path.relative_to(REPOSITORY).as_posix()
    for folder in ("jlremote", "tests")
    for path in (REPOSITORY / folder).rglob("*.py")
}


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 150


def test_every_module_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 20
    assert {
        name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in FILES)
    } == set()


def test_the_map_shows_every_package() -> None:
    packages = {path.parent.name for path in (REPOSITORY / "jlremote").glob("*/__init__.py")}
    shown = set(re.findall(r"(\w+)/", PAGE[PAGE.index("## The map") : PAGE.index("## The ladder")]))
    assert packages <= shown
