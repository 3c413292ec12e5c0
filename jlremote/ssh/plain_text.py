"""Words of a server, made fit to be shown: nothing in them can move a terminal's cursor."""

from __future__ import annotations

import re
import unicodedata

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # strings such as window titles
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)


def plain(text: str, *, longest: int = 4000) -> str:
    """Return `text` without escape sequences, control and invisible characters."""
    shown = _ESCAPES.sub("", text[: 4 * longest].replace("\r\n", "\n"))
    kept = (
        letter
        if letter == "\n" or unicodedata.category(letter)[0] != "C"
        else " " * (letter == "\t")
        for letter in shown
    )
    return "".join(kept)[:longest]
