"""Reconnecting comes at once, then ever more rarely, and sooner when there is a reason."""

from __future__ import annotations

import threading

import pytest

from jlremote.errors import ConnectionRefused, HungUp, JlrError, LinkLost, NotSSH, TooMany
from jlremote.link.connection.backoff import FLAPPING_PAUSE, SHORTEST_PAUSE, Backoff


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
    assert pauses[2] == FLAPPING_PAUSE
    time.backoff.connected()
    time.now += 60
    time.backoff.lost()
    assert time.pause() == 0
