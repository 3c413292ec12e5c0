"""One connection, watched and made again; no unexpected exception ends a loop of the link."""

from __future__ import annotations

import logging
import multiprocessing.connection as sockets
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from jlremote.errors import (
    ConnectionRefused,
    HungUp,
    JlrError,
    LinkLost,
    NeedsAuthentication,
    NotSSH,
    TooMany,
)
from jlremote.link.connection.backoff import (
    FLAPPING_PAUSE,
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    Backoff,
    begin_loop,
)
from jlremote.link.connection.liveness import (
    ALARM_SECONDS,
    Addresses,
    LaptopChanges,
    Liveness,
    Probing,
)
from jlremote.link.wire.protocol import authenticate_link
from jlremote.link.wire.states import State
from jlremote.ssh.connection import Connection
from tests.lab.programs import PATIENCE
from tests.link.fakes import Call, FakeConnection, FakePerson, Watched, until, waiters
from tests.link.service.parts import SECRET, Parts, new_parts, served
from tests.outages.parts import within


def new_bug() -> Exception:
    return ZeroDivisionError("by accident")


class FailsFirst:
    def __init__(self, then: Callable[..., Any], times: int = 1) -> None:
        self.then = then
        self.times = times
        self.calls = 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls <= self.times:
            raise new_bug()
        return self.then(*arguments, **named)


def comes_back(watched: Watched) -> None:
    again = FakeConnection()
    watched.dialer.outcomes.put(again)
    until(lambda: watched.supervisor._connection is again, "the reconnect")
    assert watched.state is State.UP


def test_a_loop_that_fails_goes_on_with_longer_and_longer_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pauses: list[float] = []
    ended = threading.Event()
    fails = FailsFirst(lambda: None, times=12)
    begin_loop("loop", fails, pause=pauses.append, ended=ended.set)
    assert ended.wait(PATIENCE)
    assert pauses[:3] == [0.25, 0.5, 1.0]
    assert pauses[-1] == LONGEST_PAUSE
    assert "by accident" in caplog.text


@pytest.mark.parametrize("failure", [OSError("no `ssh` here"), IndexError("of garbage"), new_bug()])
@within(10)
def test_a_reconnect_that_fails_unexpectedly_is_tried_again(
    watched: Watched, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """`ssh -G` without memory, or a server that sends garbage, ended supervision for good."""
    watched.connect().close()
    watched.dialer.outcomes.put(failure)
    until(lambda: watched.supervisor.condition.error is not None, "the failure")
    comes_back(watched)
    assert "reconnect failed" in caplog.text  # so it pauses as after any other failure


def test_a_connection_that_cannot_be_probed_counts_as_dead(watched: Watched) -> None:
    class Odd(FakeConnection):
        def probe(self, timeout: float) -> float:
            raise new_bug()

    odd = watched.connect(Odd())
    until(odd.gone.is_set, "the end of the odd connection")
    comes_back(watched)


@within(10)
def test_a_watch_that_fails_still_notices_the_next_loss(watched: Watched) -> None:
    changed = watched.changed = FailsFirst(lambda: False)
    connection = watched.connect()
    until(lambda: changed.calls > 1, "another look at the laptop")
    connection.close()
    comes_back(watched)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    made = new_parts(monkeypatch, tmp_path)
    with served(made):
        yield made


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\xff\0", b"[]", b"[" * 50_000, b'{"version": 5}', b'{"op": {}, "version": "0"}'],
    ids=("empty", "binary", "list", "deep", "version", "operation"),
)
def test_garbage_at_the_socket_ends_its_own_conversation_only(
    garbage: bytes, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    died: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    with sockets.Client(str(parts.files.socket)) as stranger:
        authenticate_link(stranger, SECRET)
        stranger.send_bytes(garbage)
        with suppress(EOFError, OSError):
            while True:
                stranger.recv_bytes()
    assert parts.link().status().state == "up"
    assert died == []


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_all_waiting_callers_get_the_error_of_the_attempt(watched: Watched) -> None:
    watched.wanted = False
    calls = [Call(lambda: watched.supervisor.connection(FakePerson())) for _ in range(5)]
    until(lambda: waiters(watched.supervisor._changed) == 5, "4 callers and the watcher")
    watched.dialer.outcomes.put(ConnectionRefused("no listener there", hint="look"))
    for call in calls:
        with pytest.raises(ConnectionRefused, match="no listener there") as caught:
            call.result()
        assert caught.value.hint == "look"
    assert len(watched.dialer.askers) == 1
    assert watched.state is State.DOWN


def test_a_caller_with_a_terminal_tries_again_after_one_without(watched: Watched) -> None:
    watched.wanted = False
    first, second = FakePerson(), FakePerson("password")
    unattended = Call(lambda: watched.supervisor.connection(first))
    watched.dialed(1)
    attended = Call(lambda: watched.supervisor.connection(second))
    until(lambda: waiters(watched.supervisor._changed) == 2, "the second caller and the watcher")
    watched.dialer.outcomes.put(NeedsAuthentication("a password is needed"))
    with pytest.raises(NeedsAuthentication):
        unattended.result()
    connection = FakeConnection()
    watched.dialer.outcomes.put(connection)
    assert attended.result() is connection
    assert watched.dialer.askers == [first, second]


def test_a_lost_connection_without_forwards_is_not_made_again(watched: Watched) -> None:
    connection = watched.connect()
    watched.wanted = False
    connection.close()
    until(lambda: watched.state is State.DOWN, "the end of it")
    assert len(watched.dialer.askers) == 1


def test_the_end_closes_the_connection_and_wakes_waiting_requests(watched: Watched) -> None:
    connection = watched.connect()
    watched.supervisor.end()
    assert connection.gone.is_set()
    with pytest.raises(JlrError):
        watched.supervisor.wait(PATIENCE)
    assert len(watched.dialer.askers) == 1


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
        self.disturbed_at = NEVER if happened else self.disturbed_at
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
        self.changes_at = NEVER
        self.backoff = Backoff(self._changed, clock=lambda: self.now, wait=self._wait)

    def _wait(self, event: threading.Event, seconds: float) -> bool:
        self.now += 0 if event.is_set() else seconds
        return event.is_set()

    def _changed(self) -> bool:
        return self.now >= self.changes_at

    def pause(self) -> float:
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
    time.changes_at = 4.0
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
