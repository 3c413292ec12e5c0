"""The death of a connection, a wake and another network are noticed in time."""

from __future__ import annotations

from typing import Any, cast

import pytest

from jlremote.errors import LinkLost
from jlremote.link.connection.liveness import (
    ALARM_SECONDS,
    Addresses,
    LaptopChanges,
    Liveness,
    Probing,
)
from jlremote.ssh.connection import Connection

NEVER = float("inf")


class Line:
    """A connection on a clock of its own: it falls silent, closes or is disturbed at a moment."""

    transport: Any = None
    reason = ""

    def __init__(
        self, silent_at: float = NEVER, closed_at: float = NEVER, disturbed_at: float = NEVER
    ) -> None:
        self.now = 0.0
        self.silent_at, self.closed_at, self.disturbed_at = silent_at, closed_at, disturbed_at

    def wait_closed(self, timeout: float) -> bool:
        self.now = min(self.now + timeout, max(self.now, self.closed_at))
        return self.now >= self.closed_at

    def probe(self, timeout: float) -> float:
        if self.now >= self.silent_at:
            self.now += timeout
            raise LinkLost("no answer")
        return 0.01

    def changed(self) -> bool:
        happened = self.now >= self.disturbed_at
        if happened:
            self.disturbed_at = NEVER
        return happened

    def death(self, interval: float = 15.0, count: int = 3) -> str:
        """Return why it died; `now` tells when that was noticed."""
        liveness = Liveness(lambda: Probing(interval, count), self.changed)
        return liveness.wait_until_dead(cast("Connection", self)).message


@pytest.mark.parametrize("silent_at", [0.0, 0.1, 14.9, 15.1, 29.9, 100.0, 3607.0])
@pytest.mark.parametrize(
    ("interval", "count"), [(15, 3), (1, 3), (5, 2), (60, 4), (10, 1), (2.5, 3)]
)
def test_a_dead_peer_is_noticed_within_the_users_own_settings(
    silent_at: float, interval: float, count: int
) -> None:
    line = Line(silent_at)
    assert "stopped answering" in line.death(interval, count)
    # Of the 45 seconds of the default one is left to tell it.
    assert silent_at < line.now <= silent_at + interval * max(2, count) - (interval == 15)


def test_a_loss_is_told_with_the_reason_that_the_server_or_the_system_gave() -> None:
    line = Line(closed_at=5.0)
    line.reason = "Connection reset by peer"
    assert line.death() == "Connection reset by peer"


@pytest.mark.parametrize(
    ("woken_at", "seconds"),
    [(20.0, 2 + ALARM_SECONDS), (32.0, 2 * ALARM_SECONDS)],
    ids=["between probes", "while an answer is waited for"],
)
def test_a_wake_asks_at_once_and_a_dead_connection_is_noticed_in_seconds(
    woken_at: float, seconds: float
) -> None:
    line = Line(silent_at=20.0, disturbed_at=woken_at)
    line.death()
    assert line.now <= woken_at + seconds


HOME: Addresses = ("192.168.1.7", None)
OFFICE: Addresses = ("10.0.0.7", "2001:db8::7")
NOWHERE: Addresses = (None, None)


@pytest.mark.parametrize(
    ("asleep", "addresses", "changed"),
    [
        (100.003, HOME, False),  # the two clocks are not read in the same instant
        (3700.0, HOME, True),
        (100.0, OFFICE, True),
        (100.0, NOWHERE, False),
    ],
)
def test_a_wake_and_another_network_are_told_once(
    asleep: float, addresses: Addresses, changed: bool
) -> None:
    clock, network = iter([100.0, asleep, asleep]), iter([HOME, addresses, addresses])
    laptop_changes = LaptopChanges(lambda: next(clock), lambda: next(network))
    assert (laptop_changes.changed(), laptop_changes.changed()) == (changed, False)
