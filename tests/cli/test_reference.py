"""Help, man pages, `docs/reference.md` and completion agree with the tree of commands.

`python hatch_build.py` writes the reference and the scripts of completion anew; the build makes the
man pages.
"""

from __future__ import annotations

import shutil
import subprocess

import click
import pytest

from hatch_build import contexts, man_pages, reference, written
from jlremote.cli.completion.shell_answers import Bash
from jlremote.cli.program import jlr

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
