"""The thread that serves many sockets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from jlremote.ssh.channels.event_loop import EventLoop
from tests.lab.programs import PATIENCE


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


def test_actions_of_other_threads_run_in_order_in_the_loops_thread(loop: EventLoop) -> None:
    done: list[tuple[int, int]] = []
    thread = threading.Thread(target=loop.run)
    thread.start()
    for number in range(100):
        loop.call(lambda number=number: done.append((number, threading.get_ident())))  # type: ignore[misc]
    loop.call(loop.stop)
    thread.join(PATIENCE)
    assert [number for number, _ in done] == list(range(100))
    assert {ident for _, ident in done} == {thread.ident}


def test_timers_run_by_their_time_and_then_by_their_order(loop: EventLoop) -> None:
    done: list[str] = []

    def start() -> None:
        loop.call_later(0.02, loop.stop)
        loop.call_later(0.01, lambda: done.append("late"))
        loop.call_later(0, lambda: done.append("first"))
        loop.call_later(0, lambda: done.append("second"))

    loop.call(start)
    loop.run()
    assert done == ["first", "second", "late"]


def test_an_error_of_one_handler_does_not_end_the_loop(
    loop: EventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[bool] = []

    def fail() -> None:
        raise ValueError("one connection's")

    with caplog.at_level(logging.ERROR):
        loop.call(fail)
        loop.call(lambda: done.append(True))
        loop.call(loop.stop)
        loop.run()
    assert done == [True]
    assert "one connection's" in caplog.text
