"""`--out` of `jlr exec`: images, HTML and PDF of outputs as local files."""

from __future__ import annotations

import base64
from pathlib import Path

from jlremote.laptop import paths
from jlremote.output.runs import Output
from jlremote.untrusted import local_name

_TEXT = {"image/svg+xml": ".svg", "text/html": ".html"}
_BASE64 = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "application/pdf": ".pdf",
}


def save(output: Output, folder: Path, name: str) -> list[str]:
    """Write what an output has beside its text to new files of a folder; return their paths."""
    written = []
    for kind, value in output["data"].items():
        text = "".join(map(str, value)) if isinstance(value, list) else str(value)
        if (content := _content(kind, text)) is not None:
            file = folder / local_name(name, {**_TEXT, **_BASE64}[kind])
            paths.write_new(file, content)
            written.append(str(file))
    return written


def _content(kind: str, text: str) -> bytes | None:
    if kind in _TEXT:
        return text.encode(errors="replace")
    try:
        return base64.b64decode(text) if kind in _BASE64 else None
    except ValueError:
        return None
