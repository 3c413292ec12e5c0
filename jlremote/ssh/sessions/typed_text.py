"""A text that is typed on a script's terminal: a password, or variables."""

from __future__ import annotations

from collections.abc import Callable

from jlremote.ssh.contract import Output, Stdin, Stream


class TypedText:
    """Types a text when a terminal shows a marker, before the person's own input.

    `shown` gets the terminal's output without the marker.
    """

    def __init__(self, text: bytes, marker: str, stdin: Stdin | None, shown: Output) -> None:
        self._text: bytes | None = text
        self._marker = marker.encode()
        self._stdin = stdin
        self._shown = shown
        self._before = b""
        self._asked = False
        self._wake: Callable[[], None] = lambda: None

    def output(self, stream: Stream, data: bytes) -> None:
        """Pass on the terminal's output."""
        if not self._asked:
            before, marker, data = (self._before + data).partition(self._marker)
            self._asked = bool(marker)
            kept = 0 if marker else beginning(self._marker, before)
            self._before = before[len(before) - kept :]
            data = before[: len(before) - kept] + data
            if self._asked:
                self._wake()
        if data:
            self._shown(stream, data)

    def on_ready(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        if self._stdin is not None:
            self._stdin.on_ready(wake)

    def take(self) -> bytes | None:
        """Return the text after the marker, then the person's input."""
        if not self._asked:
            return None
        if self._text is not None:
            text, self._text = self._text, None
            return text
        return self._stdin.take() if self._stdin is not None else None


def beginning(marker: bytes, data: bytes) -> int:
    """Return how many bytes at the end may begin the marker."""
    lengths = range(len(marker) - 1, 0, -1)
    return next((length for length in lengths if data.endswith(marker[:length])), 0)
