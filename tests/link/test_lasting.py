"""An exception that no one expected ends no loop of the link's threads."""

from __future__ import annotations

import logging
import multiprocessing.connection as sockets
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import LinkLost
from jlremote.link.connection.backoff import LONGEST_PAUSE, Backoff, keep_going
from jlremote.link.connection.liveness import Liveness, Probing
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.wire.protocol import authenticate_link
from jlremote.link.wire.states import State
from jlremote.ssh.connection import Connection
from tests.link.fakes import (
    FakeConnection,
    FakeDialer,
    FakePerson,
    until,
)
from tests.link.service.parts import SECRET, Parts, new_parts, served
from tests.outages.parts import within


def new_bug() -> Exception:
    return ZeroDivisionError("by accident")


class FailsFirst:
    """A function whose first calls fail."""

    def __init__(self, then: Callable[..., Any], times: int = 1) -> None:
        self.then = then
        self.times = times
        self.calls = 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls <= self.times:
            raise new_bug()
        return self.then(*arguments, **named)


def test_a_loop_that_fails_goes_on_with_longer_and_longer_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pauses: list[float] = []
    keep_going("loop", FailsFirst(lambda: None, times=12), pause=pauses.append)
    assert pauses[:3] == [0.25, 0.5, 1.0]
    assert pauses[-1] == LONGEST_PAUSE
    assert "by accident" in caplog.text


class Watched:
    """A supervisor whose parts fail as the test says."""

    def __init__(self) -> None:
        self.dialer = FakeDialer()
        self.on_up: Callable[[Connection], None] = lambda connection: None
        self.changed: Callable[[], bool] = lambda: False
        self.supervisor = Supervisor(
            self.dialer,
            wanted=lambda: True,
            on_up=lambda connection: self.on_up(connection),
            liveness=Liveness(lambda: Probing(0.01), lambda: self.changed()),
            backoff=Backoff(lambda: False, wait=lambda event, seconds: True),
        )
        self.supervisor.start()

    def connect(self, connection: FakeConnection) -> FakeConnection:
        self.dialer.outcomes.put(connection)
        assert self.supervisor.connection(FakePerson()) is connection
        return connection

    def comes_back(self) -> None:
        """Expect a new connection in the background."""
        again = FakeConnection()
        self.dialer.outcomes.put(again)
        until(lambda: self.supervisor._connection is again, "the reconnect")
        assert self.supervisor.condition.state is State.UP


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.supervisor.end()
    made.dialer.outcomes.put(LinkLost("the test is over"))


@pytest.mark.parametrize("failure", [OSError("no `ssh` here"), IndexError("of garbage"), new_bug()])
@within(10)
def test_a_reconnect_that_fails_unexpectedly_is_tried_again(
    watched: Watched, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """`ssh -G` without memory, or a server that sends garbage, ended supervision for good."""
    watched.connect(FakeConnection()).close()
    watched.dialer.outcomes.put(failure)
    until(lambda: watched.supervisor.condition.error is not None, "the failure")
    watched.comes_back()
    assert "reconnect failed" in caplog.text  # so it pauses as after any other failure


def test_a_connection_that_cannot_be_probed_counts_as_dead(watched: Watched) -> None:
    class Odd(FakeConnection):
        def probe(self, timeout: float) -> float:
            raise new_bug()

    odd = watched.connect(Odd())
    until(odd.gone.is_set, "the end of the odd connection")
    watched.comes_back()


@within(10)
def test_a_watch_that_fails_still_notices_the_next_loss(watched: Watched) -> None:
    changed = watched.changed = FailsFirst(lambda: False)
    connection = watched.connect(FakeConnection())
    until(lambda: changed.calls > 1, "another look at the laptop")
    connection.close()
    watched.comes_back()


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
