"""The session channels of one connection: sshd's `MaxSessions` counts all kinds of them together.

A command takes one for as long as it runs; a terminal, a relay into a container and a mount keep
theirs for hours. Only the server knows its limit, and says no more than "open failed" where that is
reached: then preemptible sessions end, and a new one waits for the end of a command.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

from jlremote.ssh.channels.tunnel_channel import TunnelChannel

# The most sessions that may last for hours: two of sshd's ten are left for short commands, which
# would else wait for no reason that they could name.
KEPT = 8
# sshd counts a session a moment longer than it lasts.
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)


class PreemptibleSession(Protocol):
    """A session that ends when another one needs its place."""

    def preempt(self) -> None:
        """End at once; in any thread. Twice is fine."""


class SessionSlots:
    """The sessions of a connection that are open."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._kept: set[object] = set()
        self._commands: set[object] = set()
        self._preemptible: set[PreemptibleSession] = set()

    @classmethod
    def of(cls, transport: Any) -> SessionSlots:
        """Return the slots of a connection; all kinds of channels share them."""
        shared: SessionSlots = vars(transport).setdefault("session_slots", cls())
        return shared

    def keep(self, session: object) -> bool:
        """Count a session that may last for hours; return `False` if too many are open."""
        with self._changed:
            if len(self._kept) >= KEPT:
                return False
            self._kept.add(session)
            return True

    def too_many(self) -> str:
        """Return the message that refuses one more session of that kind."""
        return (
            f"{len(self._kept)} terminals, logs, mounts or forwards into containers are open over"
            " this connection already"
        )

    def begin_command(self, session: object) -> None:
        """Count a session that ends soon, once it is open."""
        with self._changed:
            self._commands.add(session)

    def lend(self, session: PreemptibleSession) -> None:
        """Count a session that ends when another one needs its place."""
        with self._changed:
            self._preemptible.add(session)

    def end(self, session: Any) -> None:
        """Note the end of a session of any kind. Twice is fine."""
        with self._changed:
            for sessions in (self._kept, self._commands, self._preemptible):
                sessions.discard(session)
            self._changed.notify_all()

    def make_room(self, seconds: float) -> bool:
        """End the preemptible sessions, and wait for the end of any session.

        Return `False` at once if no command runs: the others may last for hours.
        """
        with self._changed:
            for session in self._preemptible:
                session.preempt()
            return bool(self._commands) and (self._changed.wait(seconds) or True)


class SessionChannel(TunnelChannel):
    """A channel that counts among the sessions of its connection; see `TunnelChannel`."""

    _refusals = 0

    @property
    def _slots(self) -> SessionSlots:
        return SessionSlots.of(self._transport)

    def ask_session(self) -> None:
        """Open the session; `refused` if too many are open."""
        if self._slots.keep(self):
            self._loop.call(self._ask)
        else:
            super().refuse(self._slots.too_many())

    def _ask(self) -> None:
        self.ask(b"session")

    def refuse(self, reason: str) -> None:
        """Ask again soon while another session may end; sshd says only "open failed"."""
        may_end = self._slots.make_room(0) or self._refusals < len(PAUSES)
        if may_end and not self._close_sent and self._transport.is_active():
            pause = PAUSES[min(self._refusals, len(PAUSES) - 1)]
            self._refusals += 1
            again = threading.Timer(pause, lambda: self._loop.call(self._ask))
            again.daemon = True
            again.start()
            return
        super().refuse(
            f"no further session on this connection ({reason}); the host's `MaxSessions` may be low"
        )

    def _release(self) -> None:
        super()._release()
        self._slots.end(self)
