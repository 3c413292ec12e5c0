"""Bytes that wait between two threads: a script's output, or its stdin."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Label = TypeVar("Label")
Piece = bytes | memoryview

# Bytes that are taken at once, unless a single piece has more.
AT_ONCE = 256 << 10


class Pieces(Generic[Label]):
    """Labelled pieces that one thread adds and another takes, in order."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Label, Piece]] = deque()

    def add(self, label: Label, data: Piece) -> None:
        self._waiting.append((label, data))

    def add_first(self, label: Label, data: Piece) -> None:
        self._waiting.appendleft((label, data))

    def take(self) -> tuple[Label, list[Piece]] | None:
        """Return neighbours of one label, `None` if nothing waits."""
        if not self._waiting:
            return None
        label, pieces, size = self._waiting[0][0], list[Piece](), 0
        while size < AT_ONCE and self._waiting and self._waiting[0][0] == label:
            pieces.append(self._waiting.popleft()[1])
            size += len(pieces[-1])
        return label, pieces


class StdinPieces:
    """Input of a script, as its `Stdin`; an empty piece is the end.

    Nothing is taken before `open`: the shell reads its script first, and may read ahead.
    `on_taken` is called with how many pieces were taken; `waiting` is how many bytes were not.
    """

    def __init__(self, on_taken: Callable[[int], None] = lambda _: None) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._on_taken = on_taken
        self._pieces: Pieces[bool] = Pieces()
        self._is_open = False
        self._added = self._taken = 0  # bytes, each counted by one thread

    @property
    def waiting(self) -> int:
        return self._added - self._taken

    def open(self, first: bytes = b"") -> None:
        """Let the input pass, after what comes `first`. Twice is fine."""
        if not self._is_open:
            if first:
                self._taken -= len(first)
                self._pieces.add_first(True, first)
            self._is_open = True
            self.wake()

    def add(self, piece: Piece) -> None:
        self._added += len(piece)
        self._pieces.add(bool(piece), piece)
        self.wake()

    # `Stdin`, in the script's thread.

    def on_ready(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def take(self) -> bytes | None:
        taken = self._pieces.take() if self._is_open else None
        if taken is None:
            return None
        self._taken += sum(map(len, taken[1]))
        self._on_taken(len(taken[1]))
        return b"".join(taken[1])
