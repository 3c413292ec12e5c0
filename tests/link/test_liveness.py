"""A death, a wake and another network are noticed in time; reconnecting comes ever more rarely."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from jlremote.errors import ConnectionRefused, HungUp, JlrError, LinkLost, NotSSH, TooMany
from jlremote.link.connection.backoff import FLAPPING_PAUSE, SHORTEST_PAUSE, Backoff
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


class Time:
    """A clock that only waiting moves, and what a machine may go through meanwhile."""

    def __init__(self) -> None:
        self.now = 0.0
        self.changes_at: list[float] = []
        self.backoff = Backoff(self._changed, clock=lambda: self.now, wait=self._wait)

    def _wait(self, event: threading.Event, seconds: float) -> bool:
        self.now += 0 if event.is_set() else seconds
        return event.is_set()

    def _changed(self) -> bool:
        due = [moment for moment in self.changes_at if moment <= self.now]
        self.changes_at = [moment for moment in self.changes_at if moment > self.now]
        return bool(due)

    def pause(self) -> float:
        """Return the seconds that the next pause takes."""
        began = self.now
        self.backoff.rest()
        return self.now - began

    def fail(self, error: JlrError, times: int) -> None:
        for _ in range(times):
            self.backoff.failed(error)


REFUSED = ConnectionRefused("no")


def test_half_an_hour_of_failures_is_at_most_a_hundred_and_thirty_attempts() -> None:
    time, attempts = Time(), 0
    while time.now < 1800:
        time.backoff.failed(REFUSED)
        time.pause()
        attempts += 1
    assert attempts <= 130


@pytest.mark.parametrize("error", [REFUSED, HungUp("no word")])  # as a proxy without the host does
def test_a_waiting_request_shortens_the_pause_to_a_second(error: JlrError) -> None:
    time = Time()
    time.fail(error, 10)
    time.backoff.hurry()
    assert time.pause() <= SHORTEST_PAUSE + 2
    assert time.pause() > 10


@pytest.mark.parametrize("error", [NotSSH("busy"), TooMany("wait"), LinkLost("thrown out")])
def test_a_server_that_refused_us_keeps_its_pause(error: JlrError) -> None:
    time = Time()
    time.fail(error, 10)
    time.backoff.hurry()
    assert time.pause() > 10


def test_a_wake_or_another_network_ends_the_pause() -> None:
    time = Time()
    time.fail(LinkLost("thrown out"), 10)
    time.changes_at = [4.0]
    assert 4.0 <= time.pause() <= 6.0


def test_two_losses_in_a_row_are_made_good_soon_and_the_third_waits() -> None:
    time, pauses = Time(), list[float]()
    for _ in range(3):
        time.backoff.connected()
        time.now += 2
        time.backoff.lost()
        pauses.append(time.pause())
    assert pauses[0] == 0
    assert pauses[1] < 1
    assert pauses[2] == pytest.approx(FLAPPING_PAUSE)
    time.backoff.connected()
    time.now += 60
    time.backoff.lost()
    assert time.pause() == 0
