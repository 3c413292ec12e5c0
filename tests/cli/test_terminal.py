"""Messages break at words on a terminal, and commands in them stay together."""

from __future__ import annotations

import click
import pytest

from jlremote.cli.screen.terminal import broken

HINT = (
    f"{click.style('hint', fg='cyan')}: `jlr run dgx --in cont1 -- python` uses that of a session; "
    "/a/path/without/blanks/that/is/longer/than/any/of/the/terminals/of/these/tests/can/be stays"
)


@pytest.mark.parametrize("width", [60, 80])
def test_a_long_line_breaks_between_words_and_not_within_a_command(width: int) -> None:
    lines = click.unstyle(broken(HINT, width)).split("\n")
    assert len(lines) > 2
    assert all(len(line) <= width or " " not in line.strip() for line in lines)
    assert all(line.count("`") % 2 == 0 for line in lines)
    assert " ".join(map(str.strip, lines)) == click.unstyle(HINT)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short\n  and   spaced", ["short", "  and   spaced"]),
        ("`a command that is longer` x", ["`a command", "  that is", "  longer` x"]),
        ("an odd ` mark stays there", ["an odd `", "  mark stays", "  there"]),
        ("  in a log, far in", ["  in a log,", "    far in"]),
    ],
)
def test_a_line_keeps_its_words_whatever_it_has(text: str, lines: list[str]) -> None:
    assert broken(text, 12 if "\n" not in text else 14).split("\n") == lines
