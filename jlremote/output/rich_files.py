"""`--out` of `jlr exec`: images, HTML and PDF of outputs as local files."""

from __future__ import annotations

import base64
from contextlib import suppress
from pathlib import Path

from jlremote.laptop import paths
from jlremote.output.runs import Output
from jlremote.untrusted import local_name

_SUFFIXES = {
    "image/svg+xml": ".svg",
    "text/html": ".html",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "application/pdf": ".pdf",
}


def save(output: Output, folder: Path, name: str) -> list[str]:
    """Write what an output has beside its text to new files of a folder; return their paths."""
    written = []
    for kind in filter(_SUFFIXES.get, output["data"]):
        value, suffix = output["data"][kind], _SUFFIXES[kind]
        text = "".join(map(str, value)) if isinstance(value, list) else str(value)
        with suppress(ValueError):  # it is not Base64
            is_text = suffix in (".svg", ".html")
            content = text.encode(errors="replace") if is_text else base64.b64decode(text)
            file = folder / local_name(name, suffix)
            paths.write_new(file, content)
            written.append(str(file))
    return written
