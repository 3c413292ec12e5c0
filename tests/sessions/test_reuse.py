"""An existing container is used as it is, with any program in it."""

from __future__ import annotations

from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.outages.parts import within
from tests.sessions.parts import START_SECONDS, failed, start, started

IDENTITY = "{{.Id}} {{.State.StartedAt}}"


def test_a_container_is_used_as_it_is_and_started_if_it_is_stopped(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container(options=("--publish", "127.0.0.1::8888"))
    before = here.inspect(IDENTITY)
    session = started(laptop, here)
    assert session.ask("api/status")["kernels"] == 0
    assert here.inspect(IDENTITY) == before
    assert session.report["image"] == "lab/jupyter"
    assert session.report["state"] == "up"
    here.engine.docker("stop", "--time", "0", here.name)
    again = start(laptop, "lab", here.name, "--env", "COLOUR=blue", "--env", "TOKEN=s3same")
    told = "already exists without `COLOUR`, `TOKEN`: `--env` applies to new containers only"
    assert (told in again.stderr, "s3same" in again.stderr) == (True, False), again
    assert "keeps its settings" not in again.stderr, again
    restarted = laptop.jlr("--verbose", "restart", here.name, timeout=START_SECONDS)
    assert restarted.status == 0, restarted
    assert "docker exec" in restarted.stderr
    assert here.inspect("{{.Id}}") == before.split()[0]


def test_a_paused_container_is_told_as_such_and_stays_paused(
    laptop: Laptop, container: ContainerFactory, engine: Engine
) -> None:
    here = container()
    engine.pause(here.name)
    with within(15):
        answer = start(laptop, "lab", here.name)
    failed(answer, 1, "paused", f"docker unpause {here.name}")
    assert here.inspect("{{.State.Paused}}") == "true"


def test_the_beginning_of_another_containers_id_is_not_a_name(
    laptop: Laptop, container: ContainerFactory
) -> None:
    somebody_elses = container().inspect("{{.Id}}")
    failed(start(laptop, "lab", somebody_elses[:10]), 6, "there is no container")
