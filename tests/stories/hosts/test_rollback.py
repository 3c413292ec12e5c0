"""A command undoes its own steps when a later one fails, and a second Ctrl-C does not stop that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest

from jlremote.errors import Busy, JlrError
from jlremote.hosts import rollback
from jlremote.hosts.rollback import undone_on_failure


def fail(error: BaseException, *steps: Callable[[], object]) -> None:
    """Take some steps, each of them to be undone, and fail then."""
    with undone_on_failure() as undo:
        for step in steps:
            undo.callback(step)
        raise error


def test_steps_are_undone_in_reverse_order_and_a_failure_of_one_hides_nothing() -> None:
    def lose_host() -> None:
        raise JlrError("the host has gone")

    undone: list[str] = []
    first, second = (partial(undone.append, step) for step in ("first", "second"))
    with pytest.raises(Busy, match="later"):
        fail(Busy("later"), first, second, lose_host)
    assert undone == ["second", "first"]


def test_a_second_ctrl_c_does_not_stop_the_rollback() -> None:
    undone: list[str] = []
    second = partial(os.kill, os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=r"^interrupted$"):
        fail(KeyboardInterrupt(), partial(undone.append, "first"), second)
    assert undone == ["first"]


def test_a_ctrl_c_after_the_first_second_of_the_rollback_ends_it_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollback, "UNDISTURBED_SECONDS", 0.0)
    undone: list[str] = []
    second = partial(os.kill, os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="may be left"):
        fail(KeyboardInterrupt(), partial(undone.append, "first"), second)
    assert undone == []


def test_an_ignored_ctrl_c_ends_no_interpreter_that_is_ending() -> None:
    """What is deleted last is so after the interpreter has given Ctrl-C its default again."""
    program = (
        "import os, signal\n"
        "from jlremote.hosts.rollback import ignore_ctrl_c\n"
        "class Last:\n"
        "    def __del__(self, kill=os.kill, me=os.getpid(), what=signal.SIGINT): kill(me, what)\n"
        "ignore_ctrl_c()\n"
        "last = Last()\n"
    )
    assert subprocess.run((sys.executable, "-c", program), timeout=30, check=False).returncode == 0
