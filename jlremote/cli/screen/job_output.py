"""A job's output: as it is into a file or pipe; on a terminal without what acts beyond the text.

An escape sequence can write the clipboard (OSC 52), or make the terminal type its answer into the
shell. Colours stay, and the moves within the last lines that progress bars are made of.
"""

from __future__ import annotations

import codecs
import os
import re

from jlremote.cli.screen.terminal import writing
from jlremote.text import begun_sequence, without_controls

# The colours, the cursor's steps, the column, the erased rest of a line; CR and backspace.
_KEPT = re.compile(r"\x1b\[[0-9;:]{0,40}[mABCDGK]|[\r\b]")


class JobOutput:
    """Writes the pieces of a job's output.

    Args:
        beside: write all of it to stderr, where stdout is for an answer in JSON.
    """

    def __init__(self, *, beside: bool = False) -> None:
        self._files = {"stdout": 2 if beside else 1, "stderr": 2}
        self._filters = {name: Filter() for name, file in self._files.items() if os.isatty(file)}

    def show(self, stream: str, data: bytes) -> None:
        """Write a piece of `stdout` or `stderr`.

        Raises:
            JlrError: it cannot be written, as on a full disk.
        """
        if stream in self._filters:
            data = self._filters[stream].harmless(data)
        rest = memoryview(data)
        with writing():
            while rest:
                rest = rest[os.write(self._files[stream], rest) :]


class Filter:
    """A filter of one stream for a terminal; a sequence may come in several pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # the beginning of a sequence

    def harmless(self, data: bytes) -> bytes:
        """Return what may be shown by now."""
        text = self._held + self._decoder.decode(data)
        self._held = begun_sequence(text)
        return without_controls(text.removesuffix(self._held), _KEPT).encode()
