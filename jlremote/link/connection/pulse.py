"""Whether a connection is alive: it is while the host answers, and nothing else proves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jlremote.errors import JlrError, LinkLost, Unreachable
from jlremote.link.connection.backoff import LOOK_SECONDS
from jlremote.ssh.contract import Connection

# After a wake, or on another network, a connection that is still good answers soon.
ALARM_SECONDS = 5.0
# Of the time that an answer may take; the rest is for whoever is told, to see it in time.
ON_TIME = 0.95


@dataclass(frozen=True)
class Probing:
    """How a dead connection is noticed; the user's `ServerAlive` settings where there are any.

    Attributes:
        interval: seconds of rest until the host is asked for a sign of life.
        count: how many intervals, that rest among them, may pass without any.
    """

    interval: float = 15.0
    count: int = 3

    @property
    def patience(self) -> float:
        """Seconds that an answer may take."""
        return self.interval * max(1, self.count - 1) * ON_TIME


class Pulse:
    """Watches over connections, one at a time.

    Args:
        probing: how a dead one is noticed, as of now.
        changed: whether the machine slept or changed networks (see `Surroundings.changed`).
    """

    def __init__(self, probing: Callable[[], Probing], changed: Callable[[], bool]) -> None:
        self._probing = probing
        self._changed = changed

    def death_of(self, connection: Connection) -> JlrError:
        """Return why the connection died, once it has."""
        while True:
            probing = self._probing()
            disturbed = self._disturbed(connection, probing.interval)
            if self._answers(connection, ALARM_SECONDS if disturbed else probing.patience):
                continue
            if connection.wait_closed(0):
                return LinkLost("the connection to the host was closed")
            return LinkLost(
                "the host has stopped answering", hint="the network or the host is down"
            )

    def _disturbed(self, connection: Connection, seconds: float) -> bool:
        """Wait until `seconds` went by, or return earlier if the connection may have died.

        Returns:
            whether the machine slept or changed networks.
        """
        while seconds > 0:
            if connection.wait_closed(min(LOOK_SECONDS, seconds)):
                return False
            if self._changed():
                return True
            seconds -= LOOK_SECONDS
        return False

    def _answers(self, connection: Connection, patience: float) -> bool:
        """Ask for a sign of life; return whether one came within `patience` seconds.

        Asked in short turns, because a wake in the middle leaves less of it.
        """
        while patience > 0 and not connection.wait_closed(0):
            turn = min(ALARM_SECONDS, patience)
            try:
                connection.probe(turn)
            except Unreachable:
                patience -= turn
                if self._changed():
                    patience = min(patience, ALARM_SECONDS)
            else:
                return True
        return False
