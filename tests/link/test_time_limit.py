"""The warning before a time limit: once, in time, and not for a limit that has changed."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

import pytest

from jlremote.jupyter.endpoint import WARNED_SECONDS
from jlremote.link.forwards import session_forward
from jlremote.link.forwards.session_forward import TimeLimit
from tests.link.fakes import PATIENCE


@pytest.fixture
def warned() -> queue.Queue[float]:
    return queue.Queue()


@pytest.fixture
def limit(warned: queue.Queue[float], monkeypatch: pytest.MonkeyPatch) -> Iterator[TimeLimit]:
    monkeypatch.setattr(session_forward, "_TURN_SECONDS", 0.05)
    limit = TimeLimit(warned.put)
    yield limit
    limit.set(None)


def test_it_warns_once_as_many_minutes_before(limit: TimeLimit, warned: queue.Queue[float]) -> None:
    until = time.time() + WARNED_SECONDS + 0.3
    limit.set(until)
    assert warned.get(timeout=PATIENCE) == until
    assert until - time.time() <= WARNED_SECONDS
    limit.set(until)
    near = time.time() + 60
    limit.set(near)
    assert warned.get(timeout=PATIENCE) == near, "the first one twice"


def test_a_limit_that_was_put_off_or_is_over_is_not_warned_of(
    limit: TimeLimit, warned: queue.Queue[float]
) -> None:
    limit.set(time.time() + WARNED_SECONDS + 0.1)
    limit.set(time.time() + WARNED_SECONDS + 3600)
    limit.set(time.time() - 1)
    last = time.time() + 60
    limit.set(last)
    assert warned.get(timeout=PATIENCE) == last
    assert warned.empty()
