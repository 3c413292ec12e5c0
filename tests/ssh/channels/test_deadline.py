"""The moment at which a call over the connection gives up."""

from __future__ import annotations

import threading
import time

import pytest

from jlremote.errors import LinkLost
from jlremote.ssh.channels.shell_session import Deadline


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_without_a_limit_a_call_waits_as_long_as_it_likes(clock: list[float]) -> None:
    deadline = Deadline(None, None)
    clock[0] += 1e6
    deadline.check()
    assert deadline.remaining() == 60
    assert deadline.remaining(5) == 5


def test_no_wait_goes_beyond_the_limit(clock: list[float]) -> None:
    deadline = Deadline(10, None)
    clock[0] += 7
    assert deadline.remaining() == 3
    assert deadline.remaining(1) == 1
    deadline.check()
    clock[0] += 3
    assert deadline.remaining() == 0
    with pytest.raises(TimeoutError, match="no end within 10 s"):
        deadline.check()
    clock[0] += 3
    assert deadline.remaining() == 0


def test_a_call_that_may_be_cancelled_checks_often(clock: list[float]) -> None:
    cancelled = threading.Event()
    deadline = Deadline(None, cancelled)
    assert deadline.remaining() <= 0.2
    deadline.check()
    cancelled.set()
    with pytest.raises(LinkLost, match="cancelled"):
        deadline.check()


def test_cancelling_counts_before_the_limit(clock: list[float]) -> None:
    cancelled = threading.Event()
    deadline = Deadline(1, cancelled)
    clock[0] += 2
    cancelled.set()
    with pytest.raises(LinkLost):
        deadline.check()
