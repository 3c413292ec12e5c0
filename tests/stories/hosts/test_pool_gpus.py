"""The GPUs of a pool, watched while hosts lose one or hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from jlremote.errors import ConnectionRefused, JlrError, LinkLost, NeedsAuthentication
from jlremote.gpus import pool_gpus
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.hosts import pools
from jlremote.hosts.links import ASKS_NOTHING
from jlremote.hosts.pools import PoolAnswer
from jlremote.questions import Asker
from tests.gpus.parts import inventory, row
from tests.stories.parts import Notes, Person, context

BOTH, ONE = inventory([row(0, busy=50, used=9000), row(1)]), inventory([row(0, busy=60, used=9000)])
HANGS = CannotAsk("`nvidia-smi` on `dgx` did not answer within 10 s")

Answer = Inventory | JlrError | Callable[[], Inventory]
Watch = Iterator[list[PoolAnswer[Inventory]]]


class Dialled(NamedTuple):
    """A link to a host, with who is asked in a dial."""

    host: str
    asker: Asker


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Answer]]:
    """The next answers of each host to the question about its GPUs."""
    given: dict[str, list[Answer]] = {"dgx": [], "lab": []}

    def ask(link: Dialled, _: object) -> Inventory:
        answer = given[link.host].pop(0)
        if isinstance(answer, JlrError):
            raise answer
        return answer if isinstance(answer, Inventory) else answer()

    monkeypatch.setattr(pool_gpus, "members", lambda _: ("dgx", "lab"))
    monkeypatch.setattr(pool_gpus, "link_on", lambda host, its: Dialled(host, its.asker))
    monkeypatch.setattr(pool_gpus, "connected_status", lambda _: None)
    monkeypatch.setattr(pool_gpus, "ask", ask)
    return given


def seen(watch: Watch) -> tuple[list[tuple[int, str, int | None]], tuple[str, ...]]:
    """Return the GPUs of `dgx`, and the notes; `lab` answers."""
    dgx, lab = next(watch)
    assert lab.answer == BOTH
    assert dgx.answer is not None, dgx.error
    return [(gpu.index, gpu.state, gpu.busy) for gpu in dgx.answer.gpus], dgx.answer.notes


def test_a_gpu_that_is_lost_stays_and_a_host_that_hangs_keeps_what_was_known(
    answers: dict[str, list[Answer]],
) -> None:
    answers["dgx"] += [BOTH, ONE, HANGS, ONE, LinkLost("the connection broke")]
    answers["lab"] += [BOTH] * 5
    watch = pool_gpus.watch_pool("@all", 0, context(Notes()))
    assert seen(watch) == ([(0, "partly busy", 50), (1, "free", 0)], ())
    lost = (1, "error", None)
    assert seen(watch) == ([(0, "partly busy", 60), lost], ())
    assert seen(watch) == ([(0, "held", None), lost], (HANGS.message,))
    assert seen(watch) == ([(0, "partly busy", 60), lost], ())
    assert next(watch)[0].answer is None, "what is not reached is not known"


def test_a_host_that_does_not_answer_in_time_is_not_asked_again_meanwhile(
    answers: dict[str, list[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = threading.Event()

    def hang() -> Inventory:
        assert free.wait(30)
        return ONE

    answers["dgx"] += [BOTH, hang]
    answers["lab"] += [BOTH] * 4
    watch = pool_gpus.watch_pool("@all", 0, context(Notes()))
    assert seen(watch)[1] == ()
    monkeypatch.setattr(pool_gpus, "LOOK_SECONDS", 0.1)
    began = time.monotonic()
    assert seen(watch) == ([(0, "partly busy", 50), (1, "free", 0)], ()), "it may be slow"
    monkeypatch.setattr(pool_gpus, "SILENT_SECONDS", 0.0)
    for _ in range(2):
        assert seen(watch) == (
            [(0, "held", None), (1, "free", None)],
            ("`dgx` does not answer about its GPUs",),
        )
    assert time.monotonic() - began < pools.PATIENCE_SECONDS
    assert answers["dgx"] == []
    free.set()


def test_a_host_that_hangs_from_the_first_look_on_has_no_answer(
    answers: dict[str, list[Answer]],
) -> None:
    answers["dgx"] += [HANGS]
    answers["lab"] += [BOTH]
    dgx, lab = next(pool_gpus.watch_pool("@all", 0, context(Notes())))
    assert (dgx.answer, dgx.error, lab.answer) == (None, HANGS, BOTH)


class Dials:
    """The dials of `dgx`, the first of which takes until it is let go; `lab` is connected.

    Attributes:
        ends: how each dial ends, `None` for a connection.
        askers: who would have been asked in each dial.
    """

    def __init__(self, *ends: JlrError | None) -> None:
        self.ends = list(ends)
        self.askers = list[Asker]()
        self._goes_on = threading.Event()
        self._thread: threading.Thread | None = None

    def connected(self, link: Dialled) -> None:
        if link.host != "dgx":
            return
        self.askers.append(link.asker)
        if self._thread is None:
            self._thread = threading.current_thread()
            assert self._goes_on.wait(30)
        end = self.ends.pop(0)
        if end is not None:
            raise end

    def end_first(self) -> None:
        """Let the first dial end, and wait until it has."""
        self._goes_on.set()
        assert self._thread is not None
        self._thread.join(30)


@pytest.fixture
def watch(
    answers: dict[str, list[Answer]], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Dials], Watch]:
    """Watch hosts that are dialled so; the first look waits for a second."""

    def begin(dials: Dials) -> Watch:
        monkeypatch.setattr(pool_gpus, "connected_status", dials.connected)
        monkeypatch.setattr(pools, "PATIENCE_SECONDS", 1.0)
        return pool_gpus.watch_pool("@all", 0, context(Notes(), PERSON))

    answers["lab"] += [BOTH] * 5
    return begin


PERSON = Person("y")
REFUSED = ConnectionRefused("connection refused")


def unknown(look: list[PoolAnswer[Inventory]]) -> str:
    """Return why `dgx` is not known; `lab` has answered."""
    dgx, lab = look
    assert (dgx.answer, lab.answer) == (None, BOTH)
    return str(dgx.error)


def test_a_host_that_is_not_connected_in_time_is_dialled_once_and_then_asked(
    watch: Callable[[Dials], Watch], answers: dict[str, list[Answer]]
) -> None:
    dials = Dials(None, None)
    looks = watch(dials)
    for _ in range(3):
        assert unknown(next(looks)) == "`dgx` is not connected yet"
    assert len(dials.askers) == 1
    answers["dgx"] += [BOTH, ONE]
    dials.end_first()
    assert seen(looks)[0] == [(0, "partly busy", 60), (1, "error", None)]
    assert len(dials.askers) == 2


def test_a_dial_that_fails_after_its_look_is_told_in_the_next_and_then_tried_again(
    watch: Callable[[Dials], Watch], answers: dict[str, list[Answer]]
) -> None:
    dials = Dials(REFUSED, None)
    looks = watch(dials)
    assert unknown(next(looks)) == "`dgx` is not connected yet"
    dials.end_first()
    assert unknown(next(looks)) == REFUSED.message
    assert len(dials.askers) == 1
    answers["dgx"] += [BOTH]
    assert seen(looks) == ([(0, "partly busy", 50), (1, "free", 0)], ())


def test_the_person_is_asked_for_the_password_of_a_host_that_wanted_it_late(
    watch: Callable[[Dials], Watch], answers: dict[str, list[Answer]]
) -> None:
    dials = Dials(NeedsAuthentication("a password"), None)
    looks = watch(dials)
    assert unknown(next(looks)) == "`dgx` is not connected yet"
    dials.end_first()
    answers["dgx"] += [BOTH]
    assert seen(looks) == ([(0, "partly busy", 50), (1, "free", 0)], ())
    assert dials.askers == [ASKS_NOTHING, PERSON]


def test_a_look_is_short_once_each_host_has_answered_or_failed(
    answers: dict[str, list[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[float]()

    def ask_each(*words: Any, after_first: float) -> list[PoolAnswer[Inventory]]:
        given.append(after_first)
        return pools.ask_each(*words, after_first=after_first)

    monkeypatch.setattr(pool_gpus, "ask_each", ask_each)
    answers["dgx"] += [REFUSED, BOTH]
    answers["lab"] += [BOTH] * 2
    looks = pool_gpus.watch_pool("@all", 0, context(Notes()))
    assert unknown(next(looks)) == REFUSED.message
    assert seen(looks)[1] == ()
    assert given == [pools.PATIENCE_SECONDS, pool_gpus.LOOK_SECONDS]
