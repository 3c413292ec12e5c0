"""The GPUs of a pool, watched while hosts lose one or hang."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace

import pytest

from jlremote.errors import JlrError, LinkLost, NeedsAuthentication
from jlremote.gpus import host_gpus, pool_gpus
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.link.client.link import Link
from jlremote.place.host.contract import Completed
from tests.gpus.parts import answer, inventory, row, uuid
from tests.lab.programs import PATIENCE
from tests.stories.parts import Notes, Person, context

BOTH, ONE = inventory([row(0, busy=50, used=9000), row(1)]), inventory([row(0, busy=60, used=9000)])
HANGS = CannotAsk("`nvidia-smi` on `dgx` did not answer within 10 s")


@pytest.mark.parametrize(
    ("looks", "seen"),
    [
        ([BOTH, ONE], ([("partly busy", 60)], (), None)),
        ([HANGS], ([], (), HANGS)),
        ([BOTH, lost := LinkLost("the connection broke")], ([], (), lost)),
        ([BOTH, None], ([("held", None), ("free", None)], ("does not answer",), None)),
        ([NeedsAuthentication("a password"), BOTH], ([("partly busy", 50), ("free", 0)], (), None)),
    ],
)
def test_what_was_last_known_of_a_host_comes_with_the_reason(
    looks: list[Inventory | JlrError | None],
    seen: tuple[list[tuple[str, int | None]], tuple[str, ...], JlrError | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look that is `None` does not come."""
    gone_by, left = threading.Event(), list(looks)

    def own_gpus(*_: object) -> Iterator[Inventory]:
        while left:
            look = left.pop(0)
            if isinstance(look, JlrError):
                raise look
            if look is None:
                break
            yield look
        gone_by.set()
        threading.Event().wait()

    known = SimpleNamespace(pool=lambda _: ("dgx",))
    monkeypatch.setattr(pool_gpus, "settings", SimpleNamespace(load=lambda: known))
    monkeypatch.setattr(pool_gpus, "_connected", lambda *_: None)
    monkeypatch.setattr(pool_gpus, "own_gpus", own_gpus)
    monkeypatch.setattr(pool_gpus, "SILENT_SECONDS", -1.0 if None in looks else 60.0)
    watch = pool_gpus.watch_pool("@all", 0.01, context(Notes(), Person("y")))
    next(watch)  # begins
    assert gone_by.wait(PATIENCE)
    [dgx] = next(watch)
    gpus = dgx.answer.gpus if dgx.answer else ()
    states, notes, error = seen
    assert ([(gpu.state, gpu.busy) for gpu in gpus], dgx.error) == (states, error)
    told = dgx.answer.notes if dgx.answer else ()
    assert [part in note for part, note in zip(notes, told, strict=True)] == [True] * len(notes)


def test_a_look_that_fails_keeps_what_was_known_and_a_gpu_that_is_gone_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Engines are asked with the first look, and their answer counts for those that follow."""
    containers = f"{'c0ffee42' * 8}|train|Up 2 hours|ada|{uuid(0)}"
    looks = [answer(row(0), containers=containers), answer(row(0)), answer("", status=124)]
    scripts = []

    def run(_: Link, script: str, **__: object) -> Completed:
        scripts.append(script)
        return Completed(0, looks[len(scripts) - 1], "")

    monkeypatch.setattr(host_gpus, "ask", lambda _: BOTH)
    monkeypatch.setattr(host_gpus, "run_script", run)
    first, *others = islice(host_gpus.own_gpus(Link("dgx", None, Person("y")), 0.0), 4)
    assert first is BOTH
    assert [[gpu.state for gpu in found.gpus] for found in others] == [["reserved", "error"]] * 3
    assert [found.notes for found in others[:2]] == [(), ()]
    assert "did not answer" in others[2].notes[0]
    assert [script.count("list_containers docker;") for script in scripts] == [1, 0, 0]
