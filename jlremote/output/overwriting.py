"""Text that was overwritten, as JupyterLab keeps it in a notebook.

Source: `processText` in JupyterLab 4's packages/outputarea/src/model.ts
"""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\n\b\r]")


def overwritten(text: str) -> str:
    """Return what is left of a stream's text after its carriage returns and backspaces.

    A carriage return goes to the beginning of the line, and what follows overwrites it; a
    backspace removes the character before. A newline begins a line, also within one.
    """
    if "\r" not in text and "\b" not in text:
        return text
    above: list[str] = []
    line: list[str] = []
    at = begin = 0
    for found in _CONTROL.finditer(f"{text}\n"):
        piece = text[begin : found.start()]
        line[at : at + len(piece)] = piece
        at, begin = at + len(piece), found.end()
        if found[0] == "\b" and at:
            at -= 1
            del line[at]
        elif found[0] == "\r":
            at = 0
        elif found[0] == "\n":
            above.append("".join(line))
            line, at = [], 0
    return "\n".join(above)
