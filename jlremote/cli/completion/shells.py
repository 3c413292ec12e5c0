"""Completion in bash, zsh and fish: click's answers, by scripts of our own."""

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

# click's own trusts COMP_WORDS, which bash cuts at @ and =, where jlr does not.
_BASH = """\
# Completion of jlr for bash 4.4 and later. Written by `jlr completion bash`.

%(complete_func)s() {
    local IFS=$'\\n' completion type value
    COMPREPLY=()
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

# click's own completes nothing the second time it is called, when it was loaded from fpath.
_ZSH = """\
#compdef %(prog_name)s
# Completion of jlr for zsh. Written by `jlr completion zsh`.

_%(prog_name)s() {
    local -a response values described
    local kind value help
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \\
        %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for kind value help in "${response[@]}"; do
        case $kind in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain)
                if [[ $help == _ ]]; then
                    values+=("$value")
                else
                    described+=("$value:$help")
                fi
                ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#values )) && compadd -U -V unsorted -a values
}

if [[ $funcstack[1] == _%(prog_name)s ]]; then
    _%(prog_name)s "$@" # loaded from fpath, by the first completion
else
    compdef _%(prog_name)s %(prog_name)s # sourced
fi
"""

# click's own cuts a description at its first comma.
_FISH = """\
# Completion of jlr for fish. Written by `jlr completion fish`.

function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) \\
        COMP_CWORD=(commandline -t) %(prog_name)s 2>/dev/null)
    for completion in $response
        set -l metadata (string split -m 1 "," -- $completion)
        switch $metadata[1]
            case dir
                __fish_complete_directories $metadata[2]
            case file
                __fish_complete_path $metadata[2]
            case plain
                echo $metadata[2]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
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
        # An @ ends a word too, but begins the next one with itself.
        ends = (self._incomplete.rfind(mark) + (mark != "@") for mark in breaks)
        kept = max(0, *ends, 0)
        shared = item.value.startswith(self._incomplete[:kept])
        return f"{item.type},{item.value[kept:] if shared else item.value}"


class Zsh(_WholeWords, ZshComplete):
    """Zsh."""

    source_template = _ZSH


class Fish(_WholeWords, FishComplete):
    """Fish."""

    source_template = _FISH


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
