"""The folder in which the demo's logins begin; what a person makes there stays."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from jlremote.demo import notebook
from jlremote.errors import JlrError
from jlremote.text import reason_of

_NAME = "files"  # beside the host's ssh configuration, where the next demo finds it
_OF_JUPYTER = (".jupyter", ".ipynb_checkpoints")


def make(config: Path) -> Path:
    """Make a new temporary folder for a host, with the demo's notebook, and return it.

    Raises:
        JlrError: it cannot be made.
    """
    try:
        folder = Path(mkdtemp(prefix="jlr-demo-"))
        (config.parent / _NAME).symlink_to(folder)
        (folder / notebook.NAME).write_text(notebook.document(), encoding="utf-8")
    except OSError as failure:
        raise JlrError(f"cannot make a temporary folder: {reason_of(failure)}") from failure
    return folder


def clear(config: Path) -> None:
    """Delete what jlr and Jupyter made in a host's folder, and the folder if nothing else is left.

    That of a demo that was killed is known by its host's configuration, too.
    """
    try:
        folder = (config.parent / _NAME).readlink()
    except OSError:  # no demo has run
        return
    for name in _OF_JUPYTER:
        shutil.rmtree(folder / name, ignore_errors=True)
    with suppress(OSError):
        if notebook.is_as_made(folder / notebook.NAME):
            (folder / notebook.NAME).unlink()
        folder.rmdir()  # fails where files of the person are left
