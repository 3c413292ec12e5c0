"""The session channels of one connection: sshd's `MaxSessions` counts all kinds of them together.

A command takes one for as long as it runs; a terminal, a relay into a container and a mount keep
theirs for hours. sshd itself would refuse one too many with no more than the words "open failed".
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, ClassVar, Protocol

# sshd's own, unless the host's administrator chose another.
_MOST = 10
COMMANDS = 8
# What may last for hours, of all kinds and of commands: the rest is for what waits for no person.
KEPT = 8
LASTING = 6


class LastingSession(Protocol):
    """A channel that is to stay."""

    def granted(self) -> None:
        """Learn that the session may be opened now; in any thread."""
        ...


class PreemptibleSession(Protocol):
    """Whoever uses a session that nobody else wants."""

    def preempt(self) -> None:
        """Learn that somebody wants it, and end; in any thread, at once. Twice is fine."""
        ...


class SessionSlots:
    """Says who may open a session channel on a connection, and who has to wait."""

    _all: ClassVar[weakref.WeakKeyDictionary[Any, SessionSlots]] = weakref.WeakKeyDictionary()
    _all_lock = threading.Lock()

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._commands = 0
        self._lasting = 0
        self._kept: set[LastingSession] = set()
        # In the order in which they came; they go before commands.
        self._waiting: dict[LastingSession, None] = {}
        self._borrowed: set[PreemptibleSession] = set()

    @classmethod
    def of(cls, transport: Any) -> SessionSlots:
        """Return the slots of a connection; all kinds of channels share them."""
        with cls._all_lock:
            slots = cls._all.get(transport)
            if slots is None:
                slots = cls._all[transport] = cls()
            return slots

    def take(self, seconds: float) -> bool:
        """Take a slot for a command; return whether one was free within `seconds`."""
        with self._changed:
            if self._used() >= _MOST:
                self.preempt_sessions()
            if not self._changed.wait_for(self._has_room_for_a_command, seconds):
                return False
            self._commands += 1
            return True

    def give_back(self) -> None:
        """Give a command's slot back."""
        with self._changed:
            self._commands -= 1
        self._serve()

    def may_last(self) -> bool:
        """Count a command that may last for hours, before it takes its slot, if it is allowed."""
        with self._changed:
            if self._lasting >= LASTING or self.lasting() >= KEPT:
                return False
            self._lasting += 1
            return True

    def lasted(self) -> None:
        """Learn that such a command has ended."""
        with self._changed:
            self._lasting -= 1

    def lasting(self) -> int:
        """Return how many sessions are meant to last."""
        return self._lasting + len(self._kept) + len(self._waiting)

    def borrow(self, borrower: PreemptibleSession) -> bool:
        """Take a slot until somebody else wants it; return whether there is one to spare."""
        with self._changed:
            if self._waiting or self._used() >= _MOST:
                return False
            self._borrowed.add(borrower)
            return True

    def preempt_sessions(self) -> None:
        """Have the borrowers end: there is no room, or the server says that there is none."""
        with self._changed:
            for borrower in self._borrowed:
                borrower.preempt()

    def bring_back(self, borrower: PreemptibleSession) -> None:
        """Take a borrower's slot back."""
        with self._changed:
            self._borrowed.discard(borrower)
        self._serve()

    def keep(self, keeper: LastingSession) -> bool:
        """Have `keeper` told once it may open a session; return `False` if too many are kept."""
        with self._changed:
            if self.lasting() >= KEPT:
                return False
            self._waiting[keeper] = None
        self._serve()
        return True

    def leave(self, keeper: LastingSession) -> None:
        """Take a keeper's slot back, if it has one or waits for one. Twice is fine."""
        with self._changed:
            self._kept.discard(keeper)
            self._waiting.pop(keeper, None)
        self._serve()

    def _has_room_for_a_command(self) -> bool:
        return self._commands < COMMANDS and not self._waiting and self._used() < _MOST

    def _used(self) -> int:
        return self._commands + len(self._kept) + len(self._borrowed)

    def _serve(self) -> None:
        granted = []
        with self._changed:
            while self._waiting and self._used() < _MOST:
                keeper = next(iter(self._waiting))
                del self._waiting[keeper]
                self._kept.add(keeper)
                granted.append(keeper)
            if self._waiting:
                self.preempt_sessions()
            self._changed.notify_all()
        for keeper in granted:
            keeper.granted()
