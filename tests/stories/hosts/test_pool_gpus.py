"""The GPUs of a host, watched while one is lost or its driver hangs."""

from __future__ import annotations

from itertools import islice

import pytest

from jlremote.gpus import host_gpus
from jlremote.link.client.link import Link
from jlremote.place.host.contract import Completed
from tests.gpus.parts import answer, inventory, row, uuid
from tests.stories.parts import Person

BOTH, ONE = inventory([row(0, busy=50, used=9000), row(1)]), inventory([row(0, busy=60, used=9000)])


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
