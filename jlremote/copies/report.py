"""How far a copy is, for the person: bytes, rate and the time left; and what was left out."""

from __future__ import annotations

import threading
import time

from jlremote.hosts.context import Progress
from jlremote.text import size_in_words

_TELL_SECONDS = 0.1
_MOST_TOLD = 1000


class CopyReport:
    """Counts what a copy has found and moved, in several threads."""

    def __init__(self, progress: Progress) -> None:
        self.files = self.total = 0
        self.skipped: list[str] = []
        self.advance = progress.advance
        self._expected = 0
        self._progress = progress
        self._done = 0
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._shown = 0.0

    def expect(self, size: int) -> None:
        """Add bytes to the expected total before their files are counted."""
        self._expected += size

    def found(self, size: int, files: int = 1) -> None:
        """Count a file that is copied, or several."""
        with self._lock:
            self.files += files
            self.total += size

    def leave_out(self, why: str) -> None:
        """Tell of something that is not copied."""
        if len(self.skipped) > _MOST_TOLD:  # an archive may have millions
            return
        if len(self.skipped) == _MOST_TOLD:
            why = "more was left out than is told here"
        self.skipped.append(why)
        self._progress.note(why)

    def moved(self, count: int) -> None:
        """Count bytes that are copied."""
        with self._lock:
            self._done += count
            now = time.monotonic()
            if now - self._shown < _TELL_SECONDS:
                return
            self._shown = now
            rate = self._done / max(now - self._began, _TELL_SECONDS)
            total = max(self.total, self._expected)
            left = (total - self._done) / max(rate, 1)
            text = f"{size_in_words(self._done)} of {size_in_words(total)}"
            text += f", {size_in_words(int(rate))}/s, {left:.0f} s left"
        self.advance(text)
