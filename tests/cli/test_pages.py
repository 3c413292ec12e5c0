"""README.md and docs/: links, settings, modules and extras that they show are there."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from jlremote.laptop.settings import settings

REPOSITORY = Path(__file__).parents[2]
PAGES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
TEXTS = {page: page.read_text("utf-8") for page in PAGES}
# Lines that are indented as code, and the empty ones between them, from the first table on.
SETTINGS = re.compile(
    r"^    \[(?:defaults|hosts|profiles).*\n(?:    .*\n|\n(?=    ))*", re.MULTILINE
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", TEXTS[page])
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_link_to_a_heading_leads_to_one() -> None:
    for page, text in TEXTS.items():
        for file, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
            target = page if not file else (page.parent / file).resolve()
            titles = re.findall(r"^#+ (.*)$", TEXTS[target], re.MULTILINE)
            plain = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in plain, f"{page.name}: {file}#{anchor}"


def test_the_settings_that_are_shown_are_valid() -> None:
    found = [(page, text) for page, text in TEXTS.items() for text in SETTINGS.findall(text)]
    assert len(found) > 4
    for page, text in found:
        settings.interpreted(page, tomllib.loads(text.replace("    ", "")))


def test_programs_and_extras_that_are_shown_exist() -> None:
    everything = "".join(TEXTS.values())
    modules = set(re.findall(r"python -m (tests[\w.]*)", everything))
    assert {"tests.bench.tunnel", "tests.lab"} <= modules
    assert [module for module in modules if find_spec(module) is None] == []
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    named = {
        each for group in re.findall(r"'\.\[([\w,]+)\]'", everything) for each in group.split(",")
    }
    assert {"demo", "kernels"} <= named <= set(extras["project"]["optional-dependencies"])
