"""The file that a job's command runs: a script, or a notebook with the program that runs it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jlremote.errors import Usage
from jlremote.hosts.requests import RunRequest
from jlremote.laptop.typed_place import host_word
from jlremote.place.runtimes.runtime import Runtime
from jlremote.remote.notebook_run import KERNEL, PLACE
from jlremote.remote.sending import program

INTERPRETER = re.compile(r"(python|sh|bash|torchrun)[\d.]*")
_SCRIPTS = (".py", ".sh")
_NOT_FOUND = {2, 127}  # exit codes of interpreters and shells that do not find a file


def _begin() -> tuple[str, ...]:
    return ("python3", "-c", program("jlremote.remote.notebook_run"))


def notebook_command(
    notebook: str, kernel: str | None, parameters: Sequence[str]
) -> tuple[str, ...]:
    """Return the command that runs a notebook (`Usage`: it is none, or a parameter has no name)."""
    if not notebook.endswith(".ipynb"):
        hint = f"put a command after `--`: `-- {notebook}`"
        raise Usage(f"`{notebook}` is not a notebook (.ipynb)", hint=hint)
    for parameter in parameters:
        name, equals, _ = parameter.partition("=")
        if not equals or not name.isidentifier():
            hint = "`-p epochs=10` sets the variable `epochs` of the notebook"
            raise Usage(f"`{parameter}` is not a parameter NAME=VALUE", hint=hint)
    chosen = () if kernel is None else (f"{KERNEL}={kernel}",)
    return (*_begin(), notebook, *chosen, *parameters)


def is_notebook(argv: Sequence[str]) -> bool:
    """Check that a job's command runs a notebook."""
    return tuple(argv[:3]) == _begin()


def as_typed(command: Sequence[str]) -> str:
    """Return a job's command quoted for a shell, of a notebook only what a person has typed."""
    return shlex.join(command[3:] if is_notebook(command) else command)


def with_place(request: RunRequest, runtime: Runtime) -> RunRequest:
    """Return the request of a notebook with the place of its copy, as `jlr cp` calls that."""
    host, inside = request.wanted.host, request.inside
    if not is_notebook(request.command) or (inside is None and runtime.has_images):
        return request
    place = host_word(host) if inside is None else f"{host}/{inside}"
    options = request.wanted.options
    options = replace(options, environment=(*options.environment, f"{PLACE}={place}"))
    return replace(request, wanted=replace(request.wanted, options=options))


def not_sent(command: Sequence[str], codes: Sequence[int]) -> str | None:
    """Return a note about a file of this machine that was not found there, as the codes say.

    The file is the script or notebook of the command, as typed.
    """
    typed = None
    if is_notebook(command):
        typed = command[3]
    elif "/" in command[0]:
        typed = command[0]
    elif INTERPRETER.fullmatch(command[0]) and not {"-c", "-m"} & set(command):
        typed = next((word for word in command[1:] if word.endswith(_SCRIPTS)), None)
    if not typed or not _NOT_FOUND & set(codes) or not Path(typed).is_file():
        return None
    return f"`{typed}` is a file of this machine: `--sync .` sends this folder first"
