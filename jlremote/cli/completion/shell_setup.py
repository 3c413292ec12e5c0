"""`jlr completion --install`: the user's shell, and the file in which it finds the script."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

import psutil

from jlremote.cli.completion.shell_answers import SHELLS, script
from jlremote.errors import Usage
from jlremote.laptop import paths

_FOUND = "jlr-found"
_SECONDS = 10.0  # for startup files, of which some ask a network


@dataclass(frozen=True)
class _Place:
    """Where a shell finds the script.

    Attributes:
        check: prints `_FOUND` in a new shell that finds the file by itself.
        otherwise: the command that makes it find the file; empty where each shell does.
    """

    file: Path
    check: str = ""
    otherwise: str = ""


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

    Return the file, and the command by which new shells find it; empty where they do.
    """
    place = _place(shell)
    paths.write_whole(place.file.resolve(), script(shell), mode=0o644)
    return place.file, "" if _finds(shell, place.check) else place.otherwise


def _place(shell: str) -> _Place:
    home = Path("~").expanduser()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    if shell == "bash":
        file = data / "bash-completion/completions/jlr"
        added = shlex.quote(f". {shlex.quote(str(file))}")
        return _Place(file, f"complete -p -D && echo {_FOUND}", f"echo {added} >> ~/.bashrc")
    if shell == "zsh":
        folder = home / ".zfunc"
        found = f"(( $fpath[(Ie){folder}] && $+functions[compdef] )) && echo {_FOUND}"
        added = "'fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit'"
        return _Place(folder / "_jlr", found, f"echo {added} >> ${{ZDOTDIR:-~}}/.zshrc")
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return _Place(config / "fish/completions/jlr.fish")
    file = paths.data_directory() / "jlr.ps1"
    added = "mkdir -Force (Split-Path $PROFILE) | Out-Null; Add-Content $PROFILE"
    return _Place(file, "", f"{added} \". '{file}'\"")


def _finds(shell: str, check: str) -> bool:
    if not check:
        return False
    argv, nothing = (shell, "-i", "-c", check), subprocess.DEVNULL
    try:
        told = subprocess.check_output(
            argv, stdin=nothing, stderr=nothing, timeout=_SECONDS, start_new_session=True
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return _FOUND.encode() in told
