"""The folder of the demo's logins, with its notebook; what a person makes there stays."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from jlremote.errors import JlrError
from jlremote.text import reason_of

NOTEBOOK = "welcome.ipynb"
_LINK = "files"  # beside the host's ssh configuration, where the next demo finds it
_OF_JUPYTER = (".jupyter", ".ipynb_checkpoints")
_WELCOME = """\
# This JupyterLab runs behind an SSH connection

`jlr demo` has started an SSH server on this machine. To jlr it is a host like any other: jlr logged
in, launched JupyterLab there, found its token, and forwards a local port to it.

- Run the cell below (Shift+Enter): a kernel behind the connection answers.
- `jlr list` in another terminal shows the session, `jlr open` opens it again.
- Ctrl-C in the demo's terminal, or `jlr stop`, ends it; files that you made here
  stay, in the folder that it names.

On your own server `dgx`: `jlr start dgx cont1`.
"""
_CODE = """\
import os
import platform

f"Python {platform.python_version()} on {platform.node()} with {os.cpu_count()} CPUs"
"""


def make(config: Path) -> Path:
    """Return a new temporary folder with the demo's notebook; raise `JlrError` if that fails."""
    try:
        folder = Path(mkdtemp(prefix="jlr-demo-"))
        (config.parent / _LINK).symlink_to(folder)
        (folder / NOTEBOOK).write_text(notebook(), encoding="utf-8")
    except OSError as failure:
        raise JlrError(f"cannot make a temporary folder: {reason_of(failure)}") from failure
    return folder


def clear(config: Path) -> None:
    """Delete a host's configuration, and in the folder of its logins what jlr and Jupyter made.

    That folder goes, too, if it is empty then.
    """
    with suppress(OSError):  # no demo has run, or files of the person are left
        folder = (config.parent / _LINK).readlink()
        for name in _OF_JUPYTER:
            shutil.rmtree(folder / name, ignore_errors=True)
        if is_as_made(folder / NOTEBOOK):
            (folder / NOTEBOOK).unlink()
        folder.rmdir()
    shutil.rmtree(config.parent, ignore_errors=True)


def notebook() -> str:
    """Return the demo's notebook as JSON."""
    text = {"cell_type": "markdown", "id": "welcome", "source": _WELCOME, "metadata": {}}
    code = {"cell_type": "code", "id": "host", "source": _CODE, "metadata": {}}
    cells = [text, code | {"execution_count": None, "outputs": []}]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}}
    return json.dumps(content | {"nbformat": 4, "nbformat_minor": 5})


def is_as_made(path: Path) -> bool:
    """Return whether a file is the demo's notebook; its cells may have been run again."""
    try:
        return _sources(path.read_text(encoding="utf-8")) <= _sources(notebook())
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _sources(text: str) -> set[str]:
    # JupyterLab saves lines, and adds empty cells.
    return {"".join(cell["source"]) for cell in json.loads(text)["cells"]} | {""}
