"""The command of a job that runs a notebook, by `remote.notebook_run`."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Sequence

from jlremote.errors import Usage
from jlremote.remote.notebook_run import KERNEL
from jlremote.remote.sending import program

# The program comes by a variable: in an argument it would be all that `jlr runs` has room for.
VARIABLE = "JLR_NOTEBOOK_PROGRAM"
_BEGIN = f"import base64, os; exec(base64.b64decode(os.environ.pop({VARIABLE!r})))"
_PROGRAM = ("python3", "-c", _BEGIN)


def check(notebook: str, parameters: Sequence[str]) -> None:
    """Refuse what is no notebook, and a parameter without a name (`Usage`)."""
    if not notebook.endswith(".ipynb"):
        raise Usage(
            f"`{notebook}` is not a notebook (.ipynb)",
            hint=f"put a command after `--`: `jlr run HOST … -- {notebook}`",
        )
    for parameter in parameters:
        name, equals, _ = parameter.partition("=")
        if not equals or not name.isidentifier():
            raise Usage(
                f"`{parameter}` is not a parameter NAME=VALUE",
                hint="`-p epochs=10` sets the variable `epochs` of the notebook",
            )


def command(notebook: str, kernel: str | None, parameters: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of the job; without a `kernel` it is the one that the notebook names."""
    chosen = () if kernel is None else (f"{KERNEL}={kernel}",)
    return (*_PROGRAM, notebook, *chosen, *parameters)


def as_typed(command: Sequence[str]) -> str:
    """Return a job's command quoted for a shell, of a notebook only what a person has typed."""
    return shlex.join(command[len(_PROGRAM) :] if is_notebook(command) else command)


def is_notebook(argv: Sequence[str]) -> bool:
    """Check that a job's command runs a notebook."""
    return tuple(argv[: len(_PROGRAM)]) == _PROGRAM


def environment() -> str:
    """Return the variable with the program, `NAME=VALUE`."""
    text = program("jlremote.remote.notebook_run").encode("ascii")
    return f"{VARIABLE}={base64.b64encode(text).decode()}"
