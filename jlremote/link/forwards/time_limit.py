"""A call some minutes before a moment, by this machine's clock, which goes on while it sleeps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from jlremote.ports.endpoint import WARNED_SECONDS

# A timer stands still while the machine sleeps.
_TURN_SECONDS = 60.0


class TimeLimit:
    """Calls `warn` with the moment, once, `WARNED_SECONDS` before it or as soon as it is known."""

    def __init__(self, warn: Callable[[float], None]) -> None:
        self._warn = warn
        self._lock = threading.Lock()
        self._until: float | None = None
        self._timer: threading.Timer | None = None

    def set(self, until: float | None) -> None:
        """Set the moment, in seconds since the epoch, `None` for no limit."""
        with self._lock:
            if until == self._until:
                return
            self._until = until
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if until is not None:
                self._wait(until)

    def _wait(self, until: float) -> None:
        pause = min(_TURN_SECONDS, until - WARNED_SECONDS - time.time())
        self._timer = threading.Timer(max(0.0, pause), self._look, (until,))
        self._timer.daemon = True
        with suppress(RuntimeError):  # no thread is left
            self._timer.start()

    def _look(self, until: float) -> None:
        with self._lock:
            if until != self._until:
                return
            left = until - time.time()
            if left > WARNED_SECONDS:
                self._wait(until)
                return
        if left > 0:
            self._warn(until)
