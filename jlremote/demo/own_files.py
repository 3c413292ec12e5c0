"""The folder of the demo's logins, with its notebook; what a person makes there stays."""

from __future__ import annotations

import base64
import inspect
import json
import shutil
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from jlremote.errors import JlrError
from jlremote.text import reason_of

NOTEBOOK = "welcome.ipynb"
_LINK = "files"  # beside the host's ssh configuration, where the next demo finds it
_OF_JUPYTER = (".jupyter", ".ipynb_checkpoints")
_SIZE = (270, 180)
_WELCOME = """\
# This JupyterLab runs behind an SSH connection

`jlr demo` has started an SSH server on this machine. To jlr it is a host like any other: jlr logged
in, launched JupyterLab there, found its token, and forwards a local port to it.

- Run the cell below (Shift+Enter): the kernel computes the picture again.
- `jlr list` in another terminal shows the session, `jlr open` opens it again.
- Ctrl-C in the demo's terminal, or `jlr stop`, ends it; files that you made here
  stay, in the folder that it names.

On your own server `dgx`: `jlr start dgx cont1`.
"""


def make(config: Path) -> Path:
    """Make a new temporary folder for a host, with the demo's notebook, and return it.

    Raises:
        JlrError: it cannot be made.
    """
    try:
        folder = Path(mkdtemp(prefix="jlr-demo-"))
        (config.parent / _LINK).symlink_to(folder)
        (folder / NOTEBOOK).write_text(notebook(), encoding="utf-8")
    except OSError as failure:
        raise JlrError(f"cannot make a temporary folder: {reason_of(failure)}") from failure
    return folder


def clear(config: Path) -> None:
    """Delete what jlr and Jupyter made in a host's folder; and the folder if it is empty."""
    try:
        folder = (config.parent / _LINK).readlink()
    except OSError:  # no demo has run
        return
    for name in _OF_JUPYTER:
        shutil.rmtree(folder / name, ignore_errors=True)
    with suppress(OSError):
        if is_as_made(folder / NOTEBOOK):
            (folder / NOTEBOOK).unlink()
        folder.rmdir()  # fails where files of the person are left


def notebook() -> str:
    """Return the demo's notebook as JSON: code that draws a picture, and the picture."""
    code = f"{inspect.getsource(steps)}\n\n{inspect.getsource(png)}"
    source = f"import struct, zlib\nfrom IPython.display import Image\n\n\n{code}\n\n"
    metadata = {"image/png": {"width": 540}}
    data = {"image/png": base64.b64encode(png(*_SIZE)).decode("ascii")}
    output = {"output_type": "execute_result", "data": data, "metadata": metadata}
    cells = [
        {"cell_type": "markdown", "id": "welcome", "source": _WELCOME, "metadata": {}},
        {
            "cell_type": "code",
            "id": "picture",
            "source": f"{source}Image(png({_SIZE[0]}, {_SIZE[1]}), width=540)",
            "execution_count": 1,
            "outputs": [output | {"execution_count": 1}],
            "metadata": {},
        },
    ]
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


def steps(point: complex, most: int) -> int:
    """Return after how many squarings a point is known to leave for infinity, at most `most`."""
    value = 0j
    for step in range(most):
        if abs(value) > 2:
            return step
        value = value * value + point
    return most


def png(width: int, height: int, most: int = 24) -> bytes:
    """Return the Mandelbrot set as a PNG image in 256 greys, dark inside the set."""
    scale = 3 / width
    rows = (
        bytes(
            255 - 255 * steps(complex(x * scale - 2.1, (y - height / 2) * scale), most) // most
            for x in range(width)
        )
        for y in range(height)
    )
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
