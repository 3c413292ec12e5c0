"""Completion in bash, zsh and fish: what click answers to the scripts in this folder."""

from __future__ import annotations

import os
import re
from typing import Any

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

_BACKSLASH = r"\\\g<0>"
SCRIPTS = {"bash": "jlr.bash", "zsh": "_jlr", "fish": "jlr.fish"}


# What ends or changes a word in bash; a `~` does at its beginning only, where it stays as typed.
_SPECIAL = re.compile(r"[\s\\'\"`$&|;<>(){}\[\]*?!#^]")


class _WholeWords(ShellComplete):
    """Completes `--option=value` as a whole, where click completes to `value` alone."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        items = super().get_completions(args, incomplete)
        items = [item for item in items if str(item.value).isprintable()]
        option, equals, _ = incomplete.partition("=")
        if equals and option.startswith("--"):
            return [
                CompletionItem(option + equals + item.value, type=item.type, help=item.help)
                for item in items
            ]
        return items


class Bash(_WholeWords, BashComplete):
    """Completion in bash, which splits words at `COMP_WORDBREAKS` and replaces the last part."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the finished words, and the word that is being typed."""
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)
        self._incomplete = "" if line[-1:].isspace() or not words else words.pop()
        return words[1:], self._incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return a line for the script: the type, and the last part of the value."""
        breaks = os.environ.get("COMP_WORDBREAKS", "")
        # An @ ends a word too, but begins the next one with itself.
        ends = (self._incomplete.rfind(mark) + (mark != "@") for mark in breaks)
        kept = max(0, *ends, 0)
        shared = item.value.startswith(self._incomplete[:kept])
        value = item.value[kept:] if shared else item.value
        # Bash puts a candidate on the line as it is; zsh and fish quote it themselves.
        return f"{item.type},{_SPECIAL.sub(_BACKSLASH, value)}"


class Zsh(_WholeWords, ZshComplete):
    """Completion in zsh."""


class Fish(_WholeWords, FishComplete):
    """Completion in fish."""


def register() -> None:
    """Make click use these classes when a shell asks."""
    for shell in (Bash, Zsh, Fish):
        add_completion_class(shell)


def script(shell: str) -> str:
    """Return the script that a shell sources."""
    from pathlib import Path  # 5 ms, which a completion must not pay

    return Path(__file__).with_name(SCRIPTS[shell]).read_text("utf-8")
