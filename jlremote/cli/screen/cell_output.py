"""The output of cells on a terminal or into a pipe.

The lines come from a terminal of our own (`jlremote.output.screen`), which leaves colours alone in
them; here they go out with these colours or without.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jlremote.cli.screen.terminal import coloured, watched, writing
from jlremote.text import without_controls

if TYPE_CHECKING:
    from jlremote.output.live import Line

_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_STYLES = {"heading": {"bold": True}, "ending": {"dim": True}}
_CLEAR = "\r\x1b[K"


class CellOutput:
    """Writes lines, and below them the one that is being written, if a person watches."""

    def __init__(self) -> None:
        self._colours = _COLOUR if coloured(sys.stdout) else None
        self._watched = watched(sys.stdout)
        self._drawn = ""

    def show(self, lines: Sequence[Line], current: str = "") -> None:
        """Write lines in place of the last `current`, which is drawn again.

        Raises:
            JlrError: they cannot be written, as on a full disk.
        """
        if not self._watched:
            current = ""
        drawn = self._fitting(current)
        if not lines and drawn == self._drawn:
            return
        text = "".join(f"{self._styled(line)}\n" for line in lines)
        with writing():
            # click would take out colours with the rest where it guesses that there is no terminal.
            sys.stdout.write(_encodable(f"{_CLEAR if self._drawn else ''}{text}{drawn}"))
            sys.stdout.flush()
        self._drawn = drawn

    def _styled(self, line: Line) -> str:
        text = without_controls(line.text, self._colours)
        styled = line.kind in _STYLES and self._colours is not None
        return click.style(text, **_STYLES[line.kind]) if styled else text

    def _fitting(self, current: str) -> str:
        """Return what fits into a line of the terminal, so that it can be drawn over."""
        plain = without_controls(current).expandtabs()
        width = shutil.get_terminal_size().columns
        if len(plain) < width:
            return without_controls(current, self._colours).expandtabs()
        return plain[: width - 1]


def _encodable(text: str) -> str:
    """Return text with a `?` for each sign that the output's encoding has not."""
    encoding = sys.stdout.encoding or "ascii"
    return text.encode(encoding, "replace").decode(encoding)
