"""The handover of reading a connection, from its own thread to one that waits for an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable

# Seconds that a borrower has to accept: it may be busy, or ending.
_ACCEPT_SECONDS = 0.05

_OWN, _OFFERED, _LENT = range(3)


class ReaderHandover:
    """Hands the reading of a connection to another thread and back; one of both reads at a time.

    Attributes:
        wanted: tells the other thread that it may read, without waiting; `None` if none wants to.
    """

    def __init__(self) -> None:
        self.wanted: Callable[[], None] | None = None
        self._state = _OWN
        self._lock = threading.Lock()
        self._returned = threading.Event()

    def lend(self) -> None:
        """Let the other thread read until it gives back; in the connection's own thread."""
        offer, self.wanted = self.wanted, None
        if offer is None:
            return
        self._returned.clear()
        self._state = _OFFERED
        offer()
        if not self._returned.wait(_ACCEPT_SECONDS) and not self._take_back():
            self._returned.wait()

    def borrow(self) -> bool:
        """Begin to read; return whether the offer still stands. Then `give_back` must follow."""
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
        """Withdraw the offer; return whether it was still open."""
        with self._lock:
            if self._state == _LENT:
                return False
            self._state = _OWN
            return True
