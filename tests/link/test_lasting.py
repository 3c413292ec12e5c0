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

from jlremote.link.connection.backoff import LONGEST_PAUSE, keep_going
from jlremote.link.wire.protocol import authenticate_link
from jlremote.link.wire.states import State
from tests.link.fakes import FakeConnection, until
from tests.link.parts import Watched
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
    keep_going("loop", FailsFirst(lambda: None, times=12), pause=pauses.append)
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
