"""Who reads a connection: its own thread, or for a moment one that waits for an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable

# A borrower that does not come, because it is busy or ends just now, is waited for no longer.
_PATIENCE = 0.05

_OWN, _OFFERED, _LENT = range(3)


class ReaderHandover:
    """Passes the reading of a connection to another thread and back; one of both reads at a time.

    Attributes:
        wanted: tells whoever wants to read that it may, without waiting; `None` if nobody does.
    """

    def __init__(self) -> None:
        self.wanted: Callable[[], None] | None = None
        self._state = _OWN
        self._lock = threading.Lock()
        self._returned = threading.Event()

    def lend(self) -> None:
        """Let the one who wants it read, until it gives back; in the connection's own thread."""
        offer, self.wanted = self.wanted, None
        if offer is None:
            return
        self._returned.clear()
        self._state = _OFFERED
        offer()
        if not self._returned.wait(_PATIENCE) and not self._take_back():
            self._returned.wait()

    def borrow(self) -> bool:
        """Begin to read, if the offer still stands; `give_back` must follow then."""
        with self._lock:
            if self._state != _OFFERED:
                return False
            self._state = _LENT
            return True

    def give_back(self) -> None:
        """Let the connection's own thread go on."""
        with self._lock:
            self._state = _OWN
        self._returned.set()

    def _take_back(self) -> bool:
        """Take an offer back; whether nobody had taken it."""
        with self._lock:
            if self._state == _LENT:
                return False
            self._state = _OWN
            return True
