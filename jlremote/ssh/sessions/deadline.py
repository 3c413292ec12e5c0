"""The moment at which a call over the connection gives up: at a time limit, or when cancelled."""

from __future__ import annotations

import threading
import time

from jlremote.errors import LinkLost

_CANCEL_SECONDS = 0.2  # how long a cancelled call may go unnoticed


class Deadline:
    """The time limit of a call in seconds, `None` for none, and the event that cancels it."""

    def __init__(self, timeout: float | None, cancelled: threading.Event | None) -> None:
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._timeout = timeout
        self._cancelled = cancelled

    def remaining(self, longest: float = 60.0) -> float:
        """Return the seconds that the call may wait before its next `check`."""
        if self._cancelled is not None:
            longest = min(longest, _CANCEL_SECONDS)
        if self._deadline is not None:
            longest = min(longest, max(0.0, self._deadline - time.monotonic()))
        return longest

    def check(self) -> None:
        """Check that the call may go on.

        Raises:
            LinkLost: the call was cancelled.
            TimeoutError: its time is over.
        """
        if self._cancelled is not None and self._cancelled.is_set():
            raise LinkLost("the command was cancelled")
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise TimeoutError(f"no end within {self._timeout:g} s")
