"""The liveness of a connection, proved by answers of the host and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jlremote.errors import JlrError, LinkLost, Unreachable
from jlremote.link.connection.backoff import LOOK_SECONDS
from jlremote.ssh.contract import Connection

# After a wake, or on another network, a connection that is still good answers soon.
ALARM_SECONDS = 5.0
# The part of the time limit that a probe may use; the rest is for reporting the loss in time.
ON_TIME = 0.95


@dataclass(frozen=True)
class Probing:
    """The limits for noticing a dead connection, from the user's `ServerAlive` settings.

    Attributes:
        interval: seconds until the host is probed.
        count: how many intervals, that one included, may pass without an answer.
    """

    interval: float = 15.0
    count: int = 3

    @property
    def patience(self) -> float:
        """The seconds that an answer may take."""
        return self.interval * max(1, self.count - 1) * ON_TIME


@dataclass(frozen=True)
class Liveness:
    """The check that a connection lives, for one connection at a time.

    `probing` returns the present limits; `changed` is `LaptopChanges.changed`.
    """

    probing: Callable[[], Probing]
    changed: Callable[[], bool]

    def wait_until_dead(self, connection: Connection) -> JlrError:
        """Wait until the connection is dead and return why."""
        while True:
            probing = self.probing()
            disturbed = self._disturbed(connection, probing.interval)
            if self._answers(connection, ALARM_SECONDS if disturbed else probing.patience):
                continue
            if connection.wait_closed(0):
                return LinkLost("the connection to the host was closed")
            return LinkLost(
                "the host has stopped answering", hint="the network or the host is down"
            )

    def _disturbed(self, connection: Connection, seconds: float) -> bool:
        """Wait for `seconds`, or less if the connection may have died.

        Returns:
            Whether the machine slept or changed networks.
        """
        while seconds > 0:
            if connection.wait_closed(min(LOOK_SECONDS, seconds)):
                return False
            if self.changed():
                return True
            seconds -= LOOK_SECONDS
        return False

    def _answers(self, connection: Connection, patience: float) -> bool:
        """Probe the host; return whether it answered within `patience` seconds.

        In short turns, because after a wake in the middle less time is left.
        """
        while patience > 0 and not connection.wait_closed(0):
            turn = min(ALARM_SECONDS, patience)
            try:
                connection.probe(turn)
            except Unreachable:
                patience -= turn
                if self.changed():
                    patience = min(patience, ALARM_SECONDS)
            else:
                return True
        return False
