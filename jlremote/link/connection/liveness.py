"""The liveness of a connection, proved by answers of the host and nothing else.

Sleep of the laptop and a change of its network are reasons to ask the host at once.
"""

from __future__ import annotations

import logging
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from jlremote.errors import JlrError, LinkLost, Unreachable
from jlremote.link.connection.backoff import LOOK_SECONDS
from jlremote.ssh.connection import Connection

log = logging.getLogger(__name__)

# After a wake, or on another network, a connection that is still good answers soon.
ALARM_SECONDS = 5.0
# The part of the time limit that a probe may use; the rest is for reporting the loss in time.
ON_TIME = 0.95


@dataclass(frozen=True)
class Probing:
    """The limits for noticing a dead connection, from the user's `ServerAlive` settings.

    The host is probed after `interval` seconds; `count` intervals, that one included, may pass
    without an answer.
    """

    interval: float = 15.0
    count: int = 3


@dataclass(frozen=True)
class Liveness:
    """Waits for the death of one connection at a time.

    `probing` returns the present limits; `changed` is `LaptopChanges.changed`.
    """

    probing: Callable[[], Probing]
    changed: Callable[[], bool]

    def wait_until_dead(self, connection: Connection) -> JlrError:
        """Wait until the connection is dead and return why."""
        while True:
            probing = self.probing()
            patience = probing.interval * max(1, probing.count - 1) * ON_TIME
            disturbed = self._disturbed(connection, probing.interval)
            if self._answers(connection, ALARM_SECONDS if disturbed else patience):
                continue
            if connection.wait_closed(0):
                return LinkLost(connection.reason or "the connection to the host was closed")
            hint = "the network or the host is down"
            return LinkLost("the host has stopped answering", hint=hint)

    def _disturbed(self, connection: Connection, seconds: float) -> bool:
        """Wait for `seconds` at most; return whether the machine slept or changed networks."""
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
            except Exception:  # what cannot be probed is not known to live
                log.exception("the connection could not be probed")
                return False
            else:
                return True
        return False


# Documentation addresses (RFC 5737 and RFC 3849); nothing is sent to them.
_FAR_AWAY = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_SLEPT_SECONDS = 1.0

Addresses = tuple[str | None, ...]


def seconds_asleep() -> float:
    """Return how many seconds the machine has slept since it booted, 0 if that is unknown.

    The boot clock runs while the machine sleeps and the monotonic clock does not.
    """
    if sys.platform != "linux":  # other systems have no such clock
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()


def own_addresses() -> Addresses:
    """Return the addresses that this machine sends from, by IPv4 and by IPv6."""
    found: list[str | None] = []
    for family, far in _FAR_AWAY:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((far, 9))  # UDP: this only looks up the route
                found.append(str(probe.getsockname()[0]))
        except OSError:
            found.append(None)
    return tuple(found)


@dataclass(eq=False)
class LaptopChanges:
    """The state of the machine when it was last looked at: its sleep and its addresses."""

    asleep: Callable[[], float] = seconds_asleep
    addresses: Callable[[], Addresses] = own_addresses

    def __post_init__(self) -> None:
        self._seen = self.asleep(), self.addresses()

    def changed(self) -> bool:
        """Return whether the machine slept or changed networks since the last call.

        A connection may have died then, or a failed attempt may work now. A network that is gone is
        no reason to try: the same one may come back in time.
        """
        asleep_before, addresses_before = self._seen
        self._seen = asleep, addresses = self.asleep(), self.addresses()
        slept = asleep - asleep_before > _SLEPT_SECONDS
        return slept or (addresses != addresses_before and any(addresses))
