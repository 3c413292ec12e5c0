"""The session channels of one connection: sshd's `MaxSessions` counts all kinds of them together.

A command takes one for as long as it runs; a terminal, a relay into a container and a mount keep
theirs for hours. sshd itself would refuse one too many with no more than the words "open failed".
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

from jlremote.ssh.channels.tunnel_channel import TunnelChannel

# sshd's own, unless the host's administrator chose another.
_MOST = 10
COMMANDS = 8
# The most sessions that may last for hours, of all kinds and of commands: others must not wait
# that long.
KEPT = 8
LASTING = 6


class LastingSession(Protocol):
    """A channel that stays open for hours."""

    def granted(self) -> None:
        """Open the session now; in any thread."""


class PreemptibleSession(Protocol):
    """A session that ends when another command needs it."""

    def preempt(self) -> None:
        """End at once: the session is needed; in any thread. Twice is fine."""


class SessionSlots:
    """Grants the session channels of a connection, or makes their users wait."""

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
        shared: SessionSlots = vars(transport).setdefault("session_slots", cls())
        return shared

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
        with self._changed:
            self._commands -= 1
        self._serve()

    def begin_lasting(self) -> bool:
        """Count a command without a time limit, before it takes its slot; return if permitted."""
        with self._changed:
            if self._lasting >= LASTING or self.lasting() >= KEPT:
                return False
            self._lasting += 1
            return True

    def end_lasting(self) -> None:
        with self._changed:
            self._lasting -= 1

    def lasting(self) -> int:
        """Return how many sessions may last for hours."""
        return self._lasting + len(self._kept) + len(self._waiting)

    def too_many(self) -> str:
        """Return the message that refuses one more session of that kind."""
        return (
            f"{self.lasting()} terminals, logs, mounts or forwards into containers are open over"
            " this connection already"
        )

    def borrow(self, session: PreemptibleSession) -> bool:
        """Take a slot until another command needs it; return whether one is free."""
        with self._changed:
            if self._waiting or self._used() >= _MOST:
                return False
            self._borrowed.add(session)
            return True

    def give_up(self, session: PreemptibleSession) -> None:
        """Give a preemptible session's slot back."""
        with self._changed:
            self._borrowed.discard(session)
        self._serve()

    def preempt_sessions(self) -> None:
        """End the preemptible sessions: no slot is left here, or none on the server."""
        with self._changed:
            for session in self._borrowed:
                session.preempt()

    def reserve(self, session: LastingSession) -> bool:
        """Call `granted` once `session` may open; return `False` if too many are open."""
        with self._changed:
            if self.lasting() >= KEPT:
                return False
            self._waiting[session] = None
        self._serve()
        return True

    def release(self, session: LastingSession) -> None:
        """Give a lasting session's slot or place in the queue back. Twice is fine."""
        with self._changed:
            self._kept.discard(session)
            self._waiting.pop(session, None)
        self._serve()

    def _has_room_for_a_command(self) -> bool:
        return self._commands < COMMANDS and not self._waiting and self._used() < _MOST

    def _used(self) -> int:
        return self._commands + len(self._kept) + len(self._borrowed)

    def _serve(self) -> None:
        granted = []
        with self._changed:
            while self._waiting and self._used() < _MOST:
                session = next(iter(self._waiting))
                del self._waiting[session]
                self._kept.add(session)
                granted.append(session)
            if self._waiting:
                self.preempt_sessions()
            self._changed.notify_all()
        for session in granted:
            session.granted()


class SessionChannel(TunnelChannel):
    """A channel that counts among the sessions of its connection; see `TunnelChannel`."""

    @property
    def _slots(self) -> SessionSlots:
        return SessionSlots.of(self._transport)

    def ask_session(self) -> None:
        """Open the session as soon as a slot is free; `refused` if too many are open."""
        if not self._slots.reserve(self):
            super().refuse(self._slots.too_many())

    def granted(self) -> None:
        self._loop.call(lambda: self.ask(b"session"))

    def refuse(self, reason: str) -> None:
        """Handle a refusal; sshd says only "open failed" when `MaxSessions` is reached."""
        super().refuse(
            f"no further session on this connection ({reason}); the host's `MaxSessions` may be low"
        )

    def _release(self) -> None:
        super()._release()
        self._slots.release(self)
