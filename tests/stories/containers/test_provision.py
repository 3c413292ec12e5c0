"""The provision of a container: reused, started or created, on a host that only answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.containers import new_container, provision
from jlremote.errors import JlrError, NotFound
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.hosts.requests import StartRequest
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.survey import Survey
from jlremote.place.host.sudo import by_hand
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.processes import Bare
from jlremote.place.runtimes.runtime import Container
from tests.stories.containers.parts import Answer, inspected, refused, start

HERE = Container("c0ffee", "cont1", running=True, started_at="2026-01-01", image="torch")
ENDED = replace(HERE, running=False)
FOUND = Findings("/d", "/j", None, ())
NOTHING = Survey(None, None)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (StartRequest("dgx", "cont1", image="other"), "already exists with the image torch"),
        (StartRequest("dgx", "cont1", gpus="all"), "already exists without GPUs; "),
        (
            StartRequest("dgx", "cont1", options=ContainerOptions(shm_size="8g")),
            "keeps its settings: shm-size is none (you asked for `8g`)",
        ),
    ],
)
def test_options_for_new_containers_are_noted(request_: StartRequest, words: str) -> None:
    begun = start({}, request_)
    provision.ensure(begun.context, Survey(HERE, FOUND))
    assert words in begun.notes.notes[0]


def test_a_container_that_ended_is_started_and_stopped_again_after_a_failure() -> None:
    begun = start({"start": [inspected(StartedAt="2026-02-02")], "container": [inspected()]})
    begun.host.answers["container"] = [inspected(StartedAt="2026-02-02")]
    _, container, _ = provision.ensure(begun.context, Survey(ENDED, None))
    assert container.started_at == "2026-02-02"
    begun.host.answers["script"] = [refused("", 1), ""]
    begun.context.undo.close()
    assert begun.host.texts("script")[1:] == ["docker stop cont1"]


@pytest.mark.parametrize(("engine", "words"), [("8", "has 1 of the 8"), ("all", "has 1 of the 2")])
def test_a_container_that_is_started_with_fewer_gpus_than_it_asks_for_is_noted(
    engine: str, words: str
) -> None:
    answers: dict[str, list[Answer]] = {"start": [inspected(StartedAt="2026-02-02")]}
    answers["script"] = ["nvidia-smi\0370\037GPU 0: NVIDIA H200 (UUID: GPU-1)\n\036"]
    begun = start(answers | {"on host": ["driver\ndriver\ndevice\ndevice\n"]})
    provision.ensure(begun.context, Survey(replace(ENDED, engine_gpus=engine), None))
    assert words in begun.notes.notes[0]


def test_a_container_whose_server_another_start_shares_is_not_stopped() -> None:
    begun = start({"start": [inspected(StartedAt="2026-02-02")], "container": [inspected()]})
    provision.ensure(begun.context, Survey(ENDED, None))
    begun.host.answers |= {"container": [inspected(StartedAt="2026-02-02")], "script": [""]}
    begun.context.undo.close()
    assert len(begun.host.texts("script")) == 1
    assert "left running" in begun.notes.notes[-1]


@pytest.mark.parametrize(
    "now", [inspected(StartedAt="2026-01-01"), inspected(Running=False), inspected(Paused=True)],
    ids=["was not started", "has ended", "is paused"],
)  # fmt: skip
def test_a_container_is_not_stopped_that_this_start_does_not_run(now: str) -> None:
    begun = start({"start": [inspected(StartedAt="2026-02-02")], "container": [now]})
    provision.ensure(begun.context, Survey(ENDED, None))
    begun.context.undo.close()
    assert begun.host.texts("script") == []


@pytest.mark.parametrize(
    ("answer", "words", "hint"),
    [
        (refused("Error: mount failed", 1), "mount failed", "`docker logs cont1`"),
        (inspected(Running=False), "it ends at once", "`docker logs cont1`"),
        (refused("cannot start a paused container", 1), "paused", "`docker unpause cont1`"),
    ],
)
def test_a_container_that_does_not_start_says_why(answer: Answer, words: str, hint: str) -> None:
    begun = start({"start": [answer], "container": [inspected(Running=False)]})
    with pytest.raises(JlrError, match=words) as failure:
        provision.ensure(begun.context, Survey(ENDED, None))
    assert (failure.value.hint or "").startswith(hint)


def test_a_start_goes_on_with_the_request_as_it_was_typed() -> None:
    options = ContainerOptions(volumes=("~/data:/data",))
    answers: dict[str, list[Answer]] = {"create": [inspected("launches")], "missing": [""]}
    answers |= {"who": ["1005\n1006\nanna\n/home/anna\n"], "info": ["{}"]}
    begun = start(answers, StartRequest("dgx", "cont1", image="torch", options=options))
    context, _, _ = provision.ensure(begun.context, NOTHING)
    assert "--user=1005:1006" in begun.host.texts("create")[0]
    assert context.request.options == options, "its hints may still name `--user`"


def test_a_plan_for_a_container_that_is_there_starts_it_at_most() -> None:
    nothing = AllocatedGpus()
    assert provision.plan(start({}).context, Survey(HERE, FOUND), nothing) == []
    assert provision.plan(start({}, runtime=Bare()).context, NOTHING, nothing) == []
    assert provision.plan(start({}).context, Survey(ENDED, None), nothing) == ["docker start cont1"]


@pytest.mark.parametrize("pulls", [False, True])
def test_a_plan_shows_the_commands_in_their_order(pulls: bool) -> None:
    there: Answer = refused("Error: No such image: torch", 1) if pulls else ""
    options = ContainerOptions(packages=("keras",))
    request = StartRequest("dgx", "cont1", image="torch", options=options)
    begun = start({"script": [there]}, request)
    plan = provision.plan(begun.context, NOTHING, AllocatedGpus(engine="device=0"))
    verbs = [by_hand(line).split()[1] for line in plan]
    assert verbs == ["pull"] * pulls + ["network", "create", "start", "exec"]
    network = plan[pulls].split()[-1]
    assert network.startswith("jlr-cont1-")
    assert f"--network={network}" in plan[pulls + 1]
    assert "--gpus=device=0" in plan[pulls + 1]
    assert "keras" in plan[-1]


def test_packages_that_cannot_be_had_any_more_are_noted() -> None:
    begun = start({"script": [refused("", 66)], "stream": [refused("", 1)]})
    has = replace(HERE, options=ContainerOptions(packages=("keras",)))
    assert new_container.install_again(begun.context, has)
    assert begun.notes.notes[0].startswith("the packages of `cont1` are gone: cannot install")


def test_without_a_container_and_an_image_the_hint_creates_it() -> None:
    missing = replace(start({}, StartRequest("dgx", "cnt1")).context, name="cnt1")
    with pytest.raises(NotFound, match="no container `cnt1` on `dgx`") as failure:
        provision.ensure(missing, NOTHING)
    assert "`jlr start dgx cnt1 --image IMAGE` creates it; " in str(failure.value.hint)
