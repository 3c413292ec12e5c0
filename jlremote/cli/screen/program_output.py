"""The output of jobs, as it is, and of cells, as lines.

A job's output goes into a file or pipe as it is, and to a terminal without what acts beyond the
text: an escape sequence can write the clipboard (OSC 52), or make the terminal type its answer into
the shell. Colours stay, and the moves within the last lines that progress bars are made of. The
lines of cells have no sequences but colours (`jlremote.output.view`); here they go out with these
or without.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jlremote.cli.screen.terminal import coloured, watched, write_all, writing
from jlremote.text import begun_sequence, without_controls

if TYPE_CHECKING:
    from jlremote.output.view import Line

# The colours, the cursor's steps, the column, the erased rest of a line; CR and backspace.
_KEPT = re.compile(r"\x1b\[[0-9;:]{0,40}[mABCDGK]|[\r\b]")
_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
# What an engine's init says of a command that is missing, in place of a shell's words.
_MISSING = re.compile(rb"\[FATAL tini \(\d+\)\] exec (\S+) failed: No such file or directory")
_STYLES = {"heading": {"bold": True}, "ending": {"dim": True}}
_CLEAR = "\r\x1b[K"


class JobOutput:
    """Writes the pieces of a job's output; `beside` an answer in JSON, all of it to stderr."""

    def __init__(self, *, beside: bool = False) -> None:
        self._files = {"stdout": 2 if beside else 1, "stderr": 2}
        self._filters = {name: Filter() for name, file in self._files.items() if os.isatty(file)}

    def show(self, stream: str, data: bytes) -> None:
        """Write a piece of `stdout` or `stderr`."""
        data = _MISSING.sub(rb"\1: command not found", data)
        if stream in self._filters:
            data = self._filters[stream].harmless(data)
        write_all(self._files[stream], data)


class Filter:
    """A filter of one stream for a terminal; a sequence may come in several pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # the beginning of a sequence

    def harmless(self, data: bytes) -> bytes:
        """Return the harmless bytes; the beginning of a sequence waits for the next piece."""
        text = self._held + self._decoder.decode(data)
        self._held = begun_sequence(text)
        return without_controls(text.removesuffix(self._held), _KEPT).encode()


class CellOutput:
    """Writes finished lines and, on a terminal, the unfinished line below them."""

    def __init__(self) -> None:
        self._colours = _COLOUR if coloured(sys.stdout) else None
        self._watched = watched(sys.stdout)
        self._drawn = ""

    def show(self, lines: Sequence[Line], current: str = "") -> None:
        """Write lines over the unfinished line, and the new `current` one below them."""
        if not self._watched:
            current = ""
        drawn = self._fitting(current)
        if not lines and drawn == self._drawn:
            return
        text = ""
        for line in lines:
            words = without_controls(line.text, self._colours)
            if line.kind in _STYLES and self._colours is not None:
                words = click.style(words, **_STYLES[line.kind])
            text += f"{words}\n"
        with writing():
            # click would take out colours with the rest where it guesses that there is no terminal.
            encoding = sys.stdout.encoding or "ascii"  # what it lacks becomes a `?`
            shown = f"{_CLEAR if self._drawn else ''}{text}{drawn}".encode(encoding, "replace")
            sys.stdout.write(shown.decode(encoding))
            sys.stdout.flush()
        self._drawn = drawn

    def _fitting(self, current: str) -> str:
        import shutil

        plain = without_controls(current).expandtabs()
        width = shutil.get_terminal_size().columns
        if len(plain) < width:
            return without_controls(current, self._colours).expandtabs()
        return plain[: width - 1]
