"""The texts for `sh` that are sent to hosts print data unchanged under every shell."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.sources import PACKAGE, nodes, parsed

_ECHO = re.compile(r"\becho\b(?P<words>[^|;&<>\n]*)")
_VARIABLE = re.compile(r"\$(\w+|\{[^}]*\}|\(\(|[?$@*(])")
# What is printed with `echo` here has digits, letters and dots only.
PLAIN = {
    *("$?", "$$", "$((", "$SLURM_JOB_ID", "$launch", "$status", "$now", "$pid", "$jlr_uid"),
    *("$address", "$jlr_first", "$MASTER_ADDR", "$jlr_line", "$1", "$2", "$start", "${20}"),
    *("${process#/proc/}", "$boot", "$keeper", "$("),
}


def shell_texts(path: Path) -> list[tuple[int, str]]:
    """Return the literal strings of a module that look like text for a shell, with their lines."""
    constants = (node for node in nodes(parsed(path)) if isinstance(node, ast.Constant))
    return [(each.lineno, each.value) for each in constants if isinstance(each.value, str)]


def test_no_data_is_printed_by_echo() -> None:
    """In dash and zsh `echo` reads a backslash as the beginning of an escape."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: echo{echo['words']}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in shell_texts(path)
        for echo in _ECHO.finditer(text)
        if {variable[0] for variable in _VARIABLE.finditer(echo["words"])} - PLAIN
    ]
    assert found == []
