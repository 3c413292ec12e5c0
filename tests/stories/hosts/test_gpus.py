"""The GPUs of a cluster and of hosts, watched while one is lost or its driver hangs."""

from __future__ import annotations

from itertools import islice

import pytest

from jlremote.gpus import host_gpus
from jlremote.gpus.snapshot import CannotAsk
from jlremote.link.client.link import Link
from jlremote.place.clusters.scheduler import ClusterGpus
from jlremote.place.host.contract import Completed
from tests.gpus.parts import answer, container, inventory, row, uuid
from tests.stories.parts import Notes, Person, context

HEADING = "HOSTNAMES\x1dJOBID\x1dalice\n"
SILENT = "slurm_load_node: Unable to contact slurm controller\x1d\x1dalice\n"


def no_gpus(*_: object) -> None:
    raise CannotAsk("no nvidia-smi")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Completed]:
    """Answers of the login node, which has no GPU itself."""
    given: list[Completed] = []
    monkeypatch.setattr(host_gpus, "link_on", lambda *_: None)
    monkeypatch.setattr(host_gpus, "ask", no_gpus)
    monkeypatch.setattr(host_gpus, "run_script", lambda *_, **__: given.pop(0))
    return given


def test_a_cluster_is_asked_once_a_minute_also_after_a_silence(
    answers: list[Completed], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("threading.Event.wait", lambda _, seconds: pauses.append(seconds))
    answers += [Completed(0, text, "") for text in (HEADING, SILENT, HEADING)]
    notes = Notes()
    assert (
        list(islice(host_gpus.watch("zih", 0.5, context(notes)), 2)) == [ClusterGpus((), (), 0)] * 2
    )
    assert pauses == [60.0, 60.0]
    assert "Unable to contact slurm controller" in notes.notes[0]


def test_a_host_without_gpus_and_without_slurm_is_told(answers: list[Completed]) -> None:
    answers.append(Completed(127, "", ""))
    with pytest.raises(CannotAsk, match="no nvidia-smi"):
        next(host_gpus.watch("box", 0.5, context(Notes())))


BOTH, ONE = inventory([row(0, busy=50, used=9000), row(1)]), inventory([row(0, busy=60, used=9000)])


def test_a_look_that_fails_keeps_what_was_known_and_a_gpu_that_is_gone_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Engines are asked with the first look, and their answer counts for those that follow."""
    containers = container({}, {}, "ada", uuid(0))
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
