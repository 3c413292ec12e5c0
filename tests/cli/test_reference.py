"""Help, man pages, `docs/reference.md` and completion agree with the tree of commands.

README.md and docs/: links, settings, modules and extras that they show are there.

`python hatch_build.py` writes the reference and the scripts of completion anew; the build makes the
man pages.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from hatch_build import contexts, man_pages, reference, written
from jlremote.cli.completion.shell_answers import Bash
from jlremote.cli.program import jlr
from jlremote.laptop.settings import settings

PAGES = {name: text.replace("\\-", "-") for name, text in man_pages().items()}
SECTIONS = {part.partition("\n")[0]: part for part in reference().split("\n## ")}


def listed(context: click.Context) -> set[str]:
    """Return what the help of a command lists: commands below it, and options."""
    below = {one.info_name or "" for one in contexts(context) if one.parent is context}
    options = [one for one in context.command.get_params(context) if isinstance(one, click.Option)]
    shown = (one for one in options if not one.hidden)
    return below.union(*((*one.opts, *one.secondary_opts) for one in shown))


def completed(context: click.Context) -> set[str]:
    """Return what completion offers behind the words of a command."""
    words = context.command_path.split()[1:]
    completer = Bash(jlr, {}, "jlr", "_JLR_COMPLETE")
    begun = ("", "-") if isinstance(context.command, click.Group) else ("-",)
    return {one.value for typed in begun for one in completer.get_completions(words, typed)}


def test_the_reference_and_the_scripts_of_completion_are_up_to_date() -> None:
    old = [path.name for path, text in written().items() if path.read_text("utf-8") != text]
    assert old == [], "`python hatch_build.py` writes them anew"


def test_all_texts_and_completion_have_each_command_and_option() -> None:
    missing: dict[str, set[str]] = {}
    for context in contexts():
        names = listed(context)
        path = context.command_path
        texts = context.get_help(), PAGES[f"{path.replace(' ', '-')}.1"], SECTIONS[path]
        lacks = {name for name in names for text in texts if name not in text}
        if differ := lacks | (names ^ completed(context)):
            missing[path] = differ
    assert missing == {}
    assert len(PAGES) == len(SECTIONS) - 1 == len(list(contexts()))


def test_a_man_page_has_only_requests_that_a_reader_knows() -> None:
    if not shutil.which("groff"):
        pytest.skip("no groff here")
    format_page = ("groff", "-man", "-Tutf8", "-ww", "-P-c")
    done = subprocess.run(
        format_page, input="".join(man_pages().values()), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "Copy files between this machine and" in done.stdout


REPOSITORY = Path(__file__).parents[2]
FILES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
TEXTS = {page: page.read_text("utf-8") for page in FILES}
# Lines that are indented as code, and the empty ones between them, from the first table on.
SETTINGS = re.compile(
    r"^    \[(?:defaults|hosts|profiles).*\n(?:    .*\n|\n(?=    ))*", re.MULTILINE
)


@pytest.mark.parametrize("page", FILES, ids=lambda page: page.name)
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
