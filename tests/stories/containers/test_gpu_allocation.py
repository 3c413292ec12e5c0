"""The choice and the lease of GPUs, on a host that only answers."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import cast

import pytest

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.gpus import allocation, taking
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.gpus.choice import Chosen
from jlremote.gpus.snapshot import CannotAsk
from jlremote.gpus.taking import with_gpus
from jlremote.hosts.requests import StartRequest
from jlremote.link.client.link import Link
from jlremote.place.host.contract import Completed, Steps
from jlremote.place.runtimes.engine.engine_gpus import gpu_flags
from jlremote.place.runtimes.engine.kinds import DOCKER, PODMAN, Engine
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.processes import Bare
from jlremote.place.runtimes.runtime import Container, Runtime
from jlremote.remote import sending
from tests.gpus.parts import BOOT, NOW, answer, process, record, row, uuid
from tests.stories.containers.parts import CONTAINERS, Answer, Start, TurnHost, refused, start

FREE = answer("\n".join((row(0), row(1))))
ALL_BUSY = answer(row(0, used=9000), processes=process(0))
NO_DRIVER = record("host", NOW, "1000 1", BOOT, "ada", 100) + record("missing")


def lease_of_another(index: int) -> str:
    target = f"jlr:theirs:{BOOT}:0:0"
    return record("lease", f"{uuid(index)}+other", f"bert {NOW}", target, "", "")


def asking(
    gpus: str | None,
    *snapshots: Answer,
    share: bool = False,
    runtime: Runtime = CONTAINERS,
    again: Answer = FREE,
    lease: Answer = "",
) -> Start:
    """Return a start that asks for GPUs on a host that prints these snapshots."""
    request = StartRequest("dgx", "cont1", gpus=gpus, share_gpus=share)
    answers: dict[str, list[Answer]] = {
        "script": list(snapshots or (FREE,)), "gpus": [again], "lease": [lease],
    }  # fmt: skip
    return start(answers, request, runtime)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses instead of making them."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


@pytest.mark.parametrize(
    ("described", "engine"), [((0, 1), f"device={uuid(1)}"), ((), "device=1"), ((1,), "device=1")]
)
def test_podman_names_devices_as_the_hosts_cdi_files_do(
    described: tuple[int, ...], engine: str
) -> None:
    names = "\n".join(map(uuid, described))
    found = answer("\n".join((row(0), row(1))), record("cdi", names))
    asked = asking("device=1", found, runtime=Containers(PODMAN), again=found)
    assert allocation.take(asked.context).engine == engine
    assert allocation.take(asking("device=1").context).engine == f"device={uuid(1)}"


def test_the_loser_of_a_race_chooses_again(waits: list[float]) -> None:
    theirs = answer("\n".join((row(0), row(1))), lease_of_another(0))
    taken = allocation.take(asking("auto", FREE, theirs, again=theirs).context)
    assert (taken.shown, len(waits)) == ("1", 1)


def test_a_race_that_is_lost_every_time_is_an_error(waits: list[float]) -> None:
    theirs = answer(row(0), lease_of_another(0))
    with pytest.raises(Busy, match="reserved for `bert`'s start of `theirs`"):
        allocation.take(asking("auto", theirs, again=theirs).context)
    assert len(waits) == taking.TRIES - 1
    with pytest.raises(Busy, match="lost the race for GPUs on `dgx`"):
        allocation.take(asking("auto", answer(row(0)), again=theirs).context)


@pytest.mark.parametrize(
    ("engine", "flags"),
    [
        (DOCKER, f'--gpus="device={uuid(1)},{uuid(0)}"'),
        (PODMAN, "--device=nvidia.com/gpu=1 --device=nvidia.com/gpu=0"),
    ],
)
def test_a_detached_job_is_promised_gpus_in_the_words_of_its_engine(
    engine: Engine, flags: str
) -> None:
    busy = answer("\n".join((row(0, used=9000), row(1))), processes=process(0))
    request = StartRequest("dgx", "job", gpus="auto:2", wait=60.0)
    begun = start({"script": [busy]}, request, Containers(engine))
    promised = allocation.take_or_promise(begun.context, detached=True)
    assert promised.wait is not None
    assert (promised.wait["gpus"], promised.wait["seconds"]) == ("auto:2", 60.0)
    assert "2 GPUs were asked for" in promised.wait["why"]
    chosen = Chosen((uuid(1), uuid(0)), ("1", "0"))
    words = " ".join(gpu_flags(engine, promised.engine))
    assert with_gpus(words, chosen) == flags
    assert with_gpus(promised.labels["org.jlremote.gpus"], chosen) == f"{uuid(1)},{uuid(0)}"


def test_a_wait_on_a_host_without_python_is_refused() -> None:
    answers: dict[str, list[Answer]] = {
        "script": [ALL_BUSY, refused("", sending.NO_PYTHON), ""], "earlier": [""],
    }  # fmt: skip
    begun = start(answers, StartRequest("dgx", "cont1", gpus="auto", wait=60.0), CONTAINERS)
    with pytest.raises(JlrError, match=r"`--wait` needs Python 3.8 or later on `dgx`"):
        allocation.take(begun.context)


def test_a_host_where_no_lease_can_be_made_is_named() -> None:
    begun = asking("auto", lease=refused("", 73))
    taken = allocation.take(begun.context)
    assert (taken.shown, taken.lease) == ("0", None)
    assert begun.notes.notes == [
        "cannot reserve GPUs in `/tmp` on `dgx`: other users may take the same ones"
    ]


@pytest.mark.parametrize(
    ("gpus", "engine"), [("2", "2"), ("device=0,1", "device=0,1"), (uuid(1), f"device={uuid(1)}")]
)
def test_without_nvidia_smi_the_engine_chooses(gpus: str, engine: str) -> None:
    begun = asking(gpus, NO_DRIVER)
    assert allocation.take(begun.context).engine == engine
    assert begun.notes.notes[0].startswith(f"GPUs `{gpus}` may be in use: there is no `nvidia-smi`")


@pytest.mark.parametrize(("gpus", "runtime"), [("auto", Containers(DOCKER)), ("2", Bare())])
def test_without_nvidia_smi_there_is_no_choice_by_jlr(gpus: str, runtime: Runtime) -> None:
    with pytest.raises(CannotAsk, match="there is no `nvidia-smi` on `dgx`"):
        allocation.take(asking(gpus, NO_DRIVER, runtime=runtime).context)


def test_a_value_of_the_engine_s_own_needs_an_engine() -> None:
    text = '"capabilities=utility"'
    assert allocation.take(asking(text).context).engine == "capabilities=utility"
    with pytest.raises(Usage, match="needs a container engine"):
        allocation.take(asking(text, runtime=Bare()).context)


def container(gpus: str, engine: str | None = None) -> Container:
    labels = {"org.jlremote.gpus": gpus, "org.jlremote.session": "cont1"}
    return Container(
        "c0ffee", "cont1", running=False, started_at="", labels=labels, engine_gpus=engine
    )


@pytest.mark.parametrize(
    ("labels", "snapshot", "said"), [("", FREE, False), (uuid(0), NO_DRIVER, True)],
    ids=["none of ours", "no nvidia-smi"],
)  # fmt: skip
def test_where_nothing_can_be_leased_the_engine_has_the_last_word(
    labels: str, snapshot: str, said: bool
) -> None:
    begun = asking(None, snapshot)
    assert allocation.take_again(begun.context, container(labels)) == AllocatedGpus()
    told = "cannot tell whether the GPUs of `cont1` are still its own, and free: there is no"
    assert [note[: len(told)] for note in begun.notes.notes] == [told] * said


def test_a_container_by_index_starts_while_its_index_is_that_of_its_gpu() -> None:
    taken = allocation.take_again(asking(None).context, container(uuid(1), "device=1"))
    assert taken.lease is not None
    assert taken.lease.uuids == (uuid(1),)


@pytest.mark.parametrize("gpus", [None, "all", "none", "auto", "device=1", "2"])
def test_a_plan_takes_what_a_start_takes_and_writes_nothing_on_the_host(gpus: str | None) -> None:
    begun = asking(gpus)
    planned, taken = allocation.planned(begun.context), allocation.take(asking(gpus).context)
    assert planned == replace(taken, lease=None)
    assert {step for step, _ in begun.host.scripts} <= {"script"}
    with pytest.raises(NotFound):
        allocation.planned(asking("device=7").context)


@pytest.mark.parametrize(
    ("asked", "have", "said"),
    [
        (None, "1", False),
        ("none", None, False),
        ("auto", "0,1", True),
        ("0,1", None, True),
        # Indices are compared by UUID.
        ("0,1", f"device={uuid(1)},{uuid(0)}", False),
        ("device=1", f"device={uuid(0)}", True),
        ("device=1", f"device={uuid(1)}", False),
        (uuid(1), f"device={uuid(0)}", True),
    ],
)
def test_other_gpus_than_those_requested_are_noted(
    asked: str | None, have: str | None, said: bool
) -> None:
    begun = asking(asked)
    allocation.explain_unchanged(begun.context, have)
    assert bool(begun.notes.notes) == said
    has = f"with GPUs `{have.removeprefix('device=')[:12]}`" if have else "without GPUs"
    assert not said or f"`cont1` already exists {has}; " in begun.notes.notes[0]


class HangingHost(TurnHost):
    """A host whose driver hangs, so that the script with a proof does not end in time."""

    def run(self, steps: Steps, *, timeout: float = 0, limit: int = 0) -> dict[str, Completed]:
        assert "nvidia-smi -L" in steps["script"]
        raise JlrError("the host did not finish within 60 s")


def test_a_driver_that_hangs_is_noted_and_fails_no_start() -> None:
    begun = asking("auto")
    hanging = replace(begun.context, host=cast("Link", HangingHost({})))
    allocation.prove(hanging, "device=0")
    assert begun.notes.notes == [
        "the GPUs of `cont1` could not be checked: the host did not finish within 60 s"
    ]
