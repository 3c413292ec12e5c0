"""`jlr completion --install`: the user's shell, and the file in which it finds the script."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath

import psutil

from jlremote.cli.completion.shell_answers import SHELLS, script
from jlremote.errors import Usage
from jlremote.laptop import paths


def users_shell() -> str:
    """Return the name of the shell that runs jlr, else that of the user's login shell.

    Raises:
        Usage: it is none that completes jlr.
    """
    for name in (*_parents(), PurePath(os.environ.get("SHELL", "")).name):
        shell = name.removesuffix(".exe").lstrip("-").lower().replace("pwsh", "powershell")
        if shell in SHELLS:
            return shell
    raise Usage(
        "cannot tell which shell this is",
        hint="name it: `jlr completion bash`, `zsh`, `fish` or `powershell`",
    )


def _parents() -> Iterator[str]:
    process: psutil.Process | None = psutil.Process()
    with suppress(psutil.Error):
        while process := process and process.parent():
            yield process.name()


def install(shell: str) -> tuple[Path, str]:
    """Write the script where the shell looks for it.

    Return the file, and the command that adds it to a startup file, for a shell that does not look
    there by itself; empty where each shell does.
    """
    file, added = _place(shell)
    paths.write_whole(file.resolve(), script(shell), mode=0o644)
    return file, added


def _place(shell: str) -> tuple[Path, str]:
    home = Path("~").expanduser()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    if shell == "bash":
        file = data / "bash-completion/completions/jlr"
        line = shlex.quote(f". {shlex.quote(str(file))}")
        return file, f"echo {line} >> ~/.bashrc"
    if shell == "zsh":
        line = "'fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit'"
        return home / ".zfunc/_jlr", f"echo {line} >> ${{ZDOTDIR:-~}}/.zshrc"
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return config / "fish/completions/jlr.fish", ""
    file = paths.data_directory() / "jlr.ps1"
    line = "mkdir -Force (Split-Path $PROFILE) | Out-Null; Add-Content $PROFILE"
    return file, f"{line} \". '{file}'\""
