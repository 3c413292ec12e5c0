"""Completion in bash, zsh and fish: click's own, mended where shells cut words their own way."""

from __future__ import annotations

import os
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

_BASH = """\
# Completion of jlr for bash 4.4 and later. Written by `jlr completion bash`.

%(complete_func)s() {
    local IFS=$'\\n' completion type value
    COMPREPLY=()
    # The line, and not COMP_WORDS: bash cuts words at @ and =, where jlr does not.
    while read -r completion; do
        type=${completion%%%%,*} value=${completion#*,}
        case $type in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _WholeWords(ShellComplete):
    """Completes `--option=value` to that, where click completes to `value` alone."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        items = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if equals and option.startswith("--"):
            return [_prefixed(item, option + equals) for item in items]
        return items


class Bash(_WholeWords, BashComplete):
    """Bash, whose words end at `COMP_WORDBREAKS`: it replaces only what follows the last one."""

    source_template = _BASH

    def source(self) -> str:
        """Return the script, without running a bash to learn its version as click does."""
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is being typed, and that one."""
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)
        self._incomplete = "" if line[-1:].isspace() or not words else words.pop()
        return words[1:], self._incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return the line that the script reads: the type, and the value from the last break on."""
        breaks = os.environ.get("COMP_WORDBREAKS", "")
        kept = max((self._incomplete.rfind(character) + 1 for character in breaks), default=0)
        shared = item.value.startswith(self._incomplete[:kept])
        return f"{item.type},{item.value[kept:] if shared else item.value}"


class Zsh(_WholeWords, ZshComplete):
    """Zsh."""


class Fish(_WholeWords, FishComplete):
    """Fish."""


CLASSES: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def register() -> None:
    """Have click use these when a shell asks."""
    for shell in CLASSES.values():
        add_completion_class(shell)


def script(shell: str) -> str:
    """Return the script that a shell sources."""
    from jlremote.cli.program import jlr

    return CLASSES[shell](jlr, {}, "jlr", "_JLR_COMPLETE").source()


def _prefixed(item: CompletionItem[str], prefix: str) -> CompletionItem[str]:
    return CompletionItem(prefix + item.value, type=item.type, help=item.help)
