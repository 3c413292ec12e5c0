"""One connection, made again when it is lost; no unexpected exception ends a loop of the link."""

from __future__ import annotations

import logging
import multiprocessing.connection as sockets
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import ConnectionRefused, JlrError, NeedsAuthentication
from jlremote.link.connection.backoff import LONGEST_PAUSE, begin_loop
from jlremote.link.wire.protocol import authenticate_link
from jlremote.link.wire.states import State
from tests.lab.programs import PATIENCE
from tests.link.fakes import Call, FakeConnection, FakePerson, Watched, until, waiters
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


def comes_back(watched: Watched) -> None:
    """Expect a new connection in the background."""
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
