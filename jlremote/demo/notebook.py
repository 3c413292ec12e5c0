"""The notebook that the demo opens: what has happened, and a picture above its code."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from jlremote.demo import picture

NAME = "welcome.ipynb"
_SIZE = (270, 180)
_WELCOME = """\
# This JupyterLab runs behind an SSH connection

`jlr demo` has started an SSH server on this machine. To jlr it is a host like any other: jlr logged
in, launched JupyterLab there, found its token, and forwards a local port to it.

- Run the cell below (Shift+Enter): the kernel computes the picture again.
- `jlr list` in another terminal shows the session, `jlr open` opens it again.
- Ctrl-C in the demo's terminal, or `jlr stop`, ends it; files that you made here
  stay, in the folder that it names.

On a server of yours: `jlr start HOST CONTAINER`.
"""


def document() -> str:
    """Return the notebook as JSON, with the picture as its cell's output."""
    code = Path(picture.__file__).read_text(encoding="utf-8").partition('"""\n\n')[2]
    shown = f"Image(png({_SIZE[0]}, {_SIZE[1]}), width=540)"
    image = base64.b64encode(picture.png(*_SIZE)).decode("ascii")
    output = {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {"image/png": {"width": 540}},
    }
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "welcome", "source": _WELCOME},
        {
            "cell_type": "code",
            "id": "picture",
            "source": f"from IPython.display import Image\n{code}\n\n{shown}",
            "execution_count": 1,
            "outputs": [output | {"data": {"image/png": image}}],
        },
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps(
        {
            "cells": [{"metadata": {}, **cell} for cell in cells],
            "metadata": {"kernelspec": kernel},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def is_as_made(path: Path) -> bool:
    """Return whether a file is this notebook, whose own cells may have been run again."""
    if path.name != NAME:
        return False
    try:
        return _sources(path.read_text(encoding="utf-8")) <= _sources(document())
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _sources(text: str) -> set[str]:
    """Return what is in a notebook's cells; JupyterLab saves lines, and adds empty cells."""
    return {"".join(cell["source"]) for cell in json.loads(text)["cells"]} | {""}
