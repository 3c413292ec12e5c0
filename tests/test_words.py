"""The code and the pages use plain words, and a class name has one meaning.

The texts for `sh` that are sent to hosts print data unchanged under every shell.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sources import modules, nodes

REPOSITORY = Path(__file__).parents[1]
MODULES = sorted((REPOSITORY / "jlremote").rglob("*.py"))
PAGES = [*REPOSITORY.glob("*.md"), *sorted((REPOSITORY / "docs").rglob("*.md"))]
RIDDLES = re.compile(r"(?i)\b(whoever|whomever|whom|nobody|somebody|everybody|anybody)\b")
# To mention a command is fine; with these options, or in a hint, it is there to be pasted.
_ENDS = r"(?:stop|rm|restart|job rm|job stop|image rm|mount --unmount)"
BARE = re.compile(
    rf"`jlr (?:{_ENDS}(?: --(?!all\b)[\w-]+)+|forward --remove \S+|local kernels remove)`"
)
BARE_IN_HINT = re.compile(rf"`jlr {_ENDS}`")
UNFILLED = re.compile(r"`(?:jlr|ssh)\b[^`\n]*\b(?:HOST|SESSION)\b[^`\n]*`")

ECHO = re.compile(r"\becho\b(?P<words>[^|;&<>\n]*)")
VARIABLE = re.compile(r"\$(\w+|\{[^}]*\}|\(\(|[?$@*(])")
# What is printed with `echo` here has digits, letters and dots only.
PLAIN = {
    *("$?", "$$", "$((", "$SLURM_JOB_ID", "$launch", "$status", "$now", "$pid", "$jlr_uid"),
    *("$address", "$jlr_first", "$MASTER_ADDR", "$jlr_line", "$1", "$2", "$start", "${20}"),
    *("${process#/proc/}", "$boot", "$keeper", "$("),
}


def test_texts_name_their_subjects() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {word[0]}"
        for path in (*MODULES, *PAGES)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (word := RIDDLES.search(line))
    ]
    assert found == []


def test_no_class_name_stands_twice() -> None:
    trees = modules().values()
    classes = (n.name for tree in trees for n in nodes(tree) if isinstance(n, ast.ClassDef))
    assert [name for name, count in Counter(classes).items() if count > 1] == []


def texts(tree: ast.Module) -> list[str]:
    """Return the strings of a module without its docstrings."""
    documents = {
        id(node.body[0].value)
        for node in nodes(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [text(node) for node in nodes(tree) if id(node) not in documents]


def bare_commands(tree: ast.Module) -> list[str]:
    """Return the commands in backticks that end or remove something without its name."""
    hints = [n.value for n in nodes(tree) if isinstance(n, ast.keyword) and n.arg == "hint"]
    found = [command for each in texts(tree) for command in BARE.findall(each)]
    in_hints = [text(n) for hint in hints for n in ast.walk(hint)]
    return found + [command for each in in_hints for command in BARE_IN_HINT.findall(each)]


def text(node: ast.AST) -> str:
    """Return a string literal with `X` for each value in it, and nothing for other nodes."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text(value) or "X" for value in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def unfilled_commands(tree: ast.Module) -> list[str]:
    """Return the commands with a host or a session that is to be filled in."""
    return [command for each in texts(tree) for command in UNFILLED.findall(each)]


@pytest.mark.parametrize("wrong", [bare_commands, unfilled_commands])
def test_commands_in_messages_can_be_run_as_they_are(
    wrong: Callable[[ast.Module], list[str]],
) -> None:
    found = {name: wrong(tree) for name, tree in modules().items()}
    assert {name: commands for name, commands in found.items() if commands} == {}


@pytest.mark.parametrize(
    ("source", "bare"),
    [
        ("f(hint='x: `jlr stop`')", True),
        ("f(\n    hint=g('x')\n    or f'`jlr image rm` ends {x}'\n)", True),
        ("why = 'run `jlr stop --force`'", True),
        ("f(hint=f'`jlr forward --remove {port}`')", True),
        ("f(hint=f'`jlr forward {name} --remove {port}`')", False),
        ("why = 'it was stopped with `jlr stop`'", False),
        ("def f():\n    'Ask as `jlr rm` does.'", False),
    ],
)
def test_a_bare_command_is_found_in_any_string(source: str, bare: bool) -> None:
    assert bool(bare_commands(ast.parse(source))) is bare


def test_no_data_is_printed_by_echo() -> None:
    """In dash and zsh `echo` reads a backslash as the beginning of an escape."""
    found = [
        f"{module}:{node.lineno}: echo{echo['words']}"
        for module, tree in modules().items()
        for node in nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for echo in ECHO.finditer(node.value)
        if {variable[0] for variable in VARIABLE.finditer(echo["words"])} - PLAIN
    ]
    assert found == []
