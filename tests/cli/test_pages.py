"""README.md and docs/: links lead to files, and settings are ones that jlr takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from jlremote.laptop.settings import settings

REPOSITORY = Path(__file__).parents[2]
PAGES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
# Lines that are indented as code, and the empty ones between them, from the first table on.
SETTINGS = re.compile(
    r"^    \[(?:defaults|hosts|profiles).*\n(?:    .*\n|\n(?=    ))*", re.MULTILINE
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_the_settings_that_are_shown_are_valid() -> None:
    found = [(page, text) for page in PAGES for text in SETTINGS.findall(page.read_text("utf-8"))]
    assert len(found) > 4
    for page, text in found:
        settings.interpreted(page, tomllib.loads(text.replace("    ", "")))
