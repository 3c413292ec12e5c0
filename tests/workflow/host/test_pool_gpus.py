"""The GPUs of a pool, watched while hosts lose one or hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from jlremote.errors import JlrError, LinkLost
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.workflow.host import pool_gpus, pools
from jlremote.workflow.host.pools import PoolAnswer
from tests.gpus.parts import inventory, row
from tests.workflow.parts import Notes, context

BOTH, ONE = inventory([row(0, busy=50, used=9000), row(1)]), inventory([row(0, busy=60, used=9000)])
HANGS = CannotAsk("`nvidia-smi` on `dgx` did not answer within 10 s")

Answer = Inventory | JlrError | Callable[[], Inventory]
Watch = Iterator[list[PoolAnswer[Inventory]]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Answer]]:
    """The next answers of each host to the question about its GPUs."""
    given: dict[str, list[Answer]] = {"dgx": [], "lab": []}

    def ask(host: str) -> Inventory:
        answer = given[host].pop(0)
        if isinstance(answer, JlrError):
            raise answer
        return answer if isinstance(answer, Inventory) else answer()

    monkeypatch.setattr(pool_gpus, "members", lambda _: ("dgx", "lab"))
    monkeypatch.setattr(pool_gpus, "link_on", lambda host, _: host)
    monkeypatch.setattr(pool_gpus, "connected", lambda _: None)
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
