"""Completion in bash, zsh, fish and PowerShell: what click answers to the script of each.

The scripts of bash and zsh are beside this module, and those of the others are click's. `install`
is `jlr completion --install`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from click import shell_completion as of_click
from click.shell_completion import CompletionItem

from jlremote.errors import Usage

if TYPE_CHECKING:
    from pathlib import Path

_BACKSLASH = r"\\\g<0>"
# What ends or changes a word in bash; a `~` does at its beginning only, where it stays as typed.
_SPECIAL = re.compile(r"[\s\\'\"`$&|;<>(){}\[\]*?!#^]")
_PLAIN = re.compile(r"[\w./:~%+=-][\w./:~%+=@-]*")  # a word of PowerShell without a quote


class _WholeWords(of_click.ShellComplete):
    """Completes `--option=value` as a whole, where click completes to `value` alone."""

    script: str | None = None  # the file beside this module

    def source(self) -> str:
        """Return the script that a shell sources; it prints no errors."""
        from pathlib import Path  # 5 ms, which a completion must not pay

        if self.script is None:
            return super().source()
        return Path(__file__).with_name(self.script).read_text("utf-8")

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        items = super().get_completions(args, incomplete)
        items = [item for item in items if str(item.value).isprintable()]
        option, equals, _ = incomplete.partition("=")
        for item in items if equals and option.startswith("--") else ():
            item.value = option + equals + item.value
        return items


class Bash(_WholeWords, of_click.BashComplete):
    """Completion in bash, which splits words at `COMP_WORDBREAKS` and replaces the last part."""

    script = "jlr.bash"

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the finished words, and the word that is being typed."""
        line = os.environ.get("COMP_LINE", "")
        words = of_click.split_arg_string(line)
        self._incomplete = "" if line[-1:].isspace() or not words else words.pop()
        return words[1:], self._incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return a line for the script: the type, and the last part of the value."""
        breaks = os.environ.get("COMP_WORDBREAKS", "")
        # An @ ends a word too, but begins the next one with itself.
        kept = max(0, 0, *(self._incomplete.rfind(mark) + (mark != "@") for mark in breaks))
        shared = item.value.startswith(self._incomplete[:kept])
        value = item.value[kept:] if shared else item.value
        # Bash puts a candidate on the line as it is; zsh and fish quote it themselves.
        return f"{item.type},{_SPECIAL.sub(_BACKSLASH, value)}"


class Zsh(_WholeWords, of_click.ZshComplete):
    """Completion in zsh."""

    script = "_jlr"


class Fish(_WholeWords, of_click.FishComplete):
    """Completion in fish; click's script shows errors, and ends a description at a comma."""

    source_template = of_click.FishComplete.source_template.replace(
        "%(prog_name)s);", "%(prog_name)s 2>/dev/null);"
    ).replace('split ","', 'split --max 1 ","')


class PowerShell(_WholeWords, of_click.PowerShellComplete):
    """Completion in PowerShell, which puts a candidate on the line as it is."""

    def format_completion(self, item: CompletionItem[Any]) -> str:
        if not _PLAIN.fullmatch(value := str(item.value)):
            item.value = "'" + value.replace("'", "''") + "'"
        return super().format_completion(item)


SHELLS = {shell.name: shell for shell in (Bash, Zsh, Fish, PowerShell)}


def register() -> None:
    """Make click use these classes when a shell asks."""
    for shell in SHELLS.values():
        of_click.add_completion_class(shell)


def script(shell: str) -> str:
    """Return the script that a shell sources."""
    from jlremote.cli.program import jlr

    return SHELLS[shell](jlr, {}, "jlr", "_JLR_COMPLETE").source()


def users_shell() -> str:
    """Return the shell that runs jlr, else the login shell (`Usage`: neither completes jlr)."""
    for name in (*_parents(), os.path.basename(os.environ.get("SHELL", ""))):  # noqa: PTH119 - pathlib costs 5 ms
        shell = name.removesuffix(".exe").lstrip("-").lower().replace("pwsh", "powershell")
        if shell in SHELLS:
            return shell
    hint = "name it: `jlr completion bash`, `zsh`, `fish` or `powershell`"
    raise Usage("cannot tell which shell this is", hint=hint)


def _parents() -> Iterator[str]:
    import psutil

    process: psutil.Process | None = psutil.Process()
    with suppress(psutil.Error):
        while process := process and process.parent():
            yield process.name()


def install(shell: str) -> tuple[Path, str]:
    """Write the script where the shell looks for it.

    Return the file, and the command that adds it to a startup file, for a shell that does not look
    there by itself; empty where each shell does.
    """
    from pathlib import Path

    from jlremote.laptop import paths

    home, command = Path("~").expanduser(), ""
    if shell == "bash":
        data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
        file = data / "bash-completion/completions/jlr"
        command = f"echo {shlex.quote(f'. {shlex.quote(str(file))}')} >> ~/.bashrc"
    elif shell == "zsh":
        file = home / ".zfunc/_jlr"
        line = "'fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit'"
        command = f"echo {line} >> ${{ZDOTDIR:-~}}/.zshrc"
    elif shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        file = config / "fish/completions/jlr.fish"
    else:
        file = paths.data_directory() / "jlr.ps1"
        line = "mkdir -Force (Split-Path $PROFILE) | Out-Null; Add-Content $PROFILE"
        command = f"{line} \". '{file}'\""
    paths.write_whole(file.resolve(), script(shell), mode=0o644)
    return file, command
