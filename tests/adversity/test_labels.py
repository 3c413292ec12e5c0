"""Labels that a stranger has put into an image make no container one of jlr's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import NotFound
from jlremote.jobs import engine_jobs, known_jobs
from jlremote.jupyter.presence import is_session
from jlremote.jupyter.survey import Survey
from jlremote.laptop import job_records
from jlremote.laptop.job_records import JobRecord
from jlremote.place.runtimes.docker import docker_commands
from jlremote.place.runtimes.engine.kinds import DOCKER, PODMAN
from jlremote.place.runtimes.engine_containers import ListedContainer, read_container
from jlremote.place.runtimes.runtime import Container, ContainerSpec
from jlremote.selection.host_search import with_others
from tests.jobs.parts import whole
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.stories.parts import FakeHost, context

BAKED = {
    "org.jlremote.user": "ada",
    "org.jlremote.created-by": "jlr/1",
    "org.jlremote.session": "cont1",
    "org.jlremote.typed": "cont1",
    "org.jlremote.job": "train",
    "org.jlremote.job-command": "python train.py",
    "org.jlremote.gpus": "GPU-0",
    "org.jlremote.packages": "evil-package",
    "org.jlremote.engine-arguments": "--privileged 'never ended",
}


def inspected(name: str, labels: Mapping[str, str], identity: str = "1d") -> dict[str, Any]:
    return {
        "Id": identity,
        "Name": f"/{name}",
        "State": {"Status": "exited", "ExitCode": 0, "StartedAt": "2025-03-01T12:00:00Z"},
        "Config": {"Labels": labels},
        "HostConfig": {},
        "NetworkSettings": {},
    }


def test_a_container_of_an_image_with_labels_is_neither_a_job_nor_a_session() -> None:
    theirs = inspected("database", BAKED)
    assert engine_jobs.read(json.dumps([theirs])) == []
    container = read_container(theirs)
    assert not is_session(ListedContainer(container, "exited"))
    assert (container.options.packages, container.options.engine_arguments) == ((), ())


def test_a_typed_name_in_an_image_does_not_lead_to_its_container() -> None:
    other = Container("1d", "evil", running=True, started_at="", labels=BAKED)
    ours = Container(
        "2d", "ada-cont1", running=True, started_at="", labels={"org.jlremote.session": "ada-cont1"}
    )
    there = {"evil": Survey(other, None), "ada-cont1": Survey(ours, None)}
    first = Survey(None, None, called=("evil", "ada-cont1"))
    found = with_others(("cont1",), first, there.__getitem__)
    assert [name for name, _ in found] == ["cont1", "ada-cont1"]


@pytest.mark.parametrize("engine", [DOCKER, PODMAN])
def test_a_new_container_sets_every_label_so_that_none_comes_from_its_image(engine: Any) -> None:
    """The user's, which is missing here, is set by the host's shell."""
    spec = ContainerSpec("cont1", "evil")
    text = "".join(path.read_text() for path in Path("jlremote").rglob("*.py"))
    named_in_the_source = set(re.findall(r'_LABEL = "(org\.jlremote\.[\w-]+)"', text))
    for argv in (
        docker_commands.create_argv(engine, spec),
        docker_commands.job_argv(engine, spec, ("true",), {}),
    ):
        told = dict(
            word.removeprefix("--label=").split("=", 1)
            for word in argv
            if word.startswith("--label=")
        )
        assert {*told, "org.jlremote.user"} == named_in_the_source
        assert [value for name, value in told.items() if value] in (
            ["cont1", told["org.jlremote.created-by"]],
            [told["org.jlremote.created-by"], "cont1"],
            [told["org.jlremote.created-by"]],
        )


def test_a_job_is_deleted_by_its_id_and_not_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the list and the deletion another container may get the name."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    job = inspected("train", {"org.jlremote.job": "train"}, "c0ffee")
    host: Any = FakeHost("lab", {"processes": "", "containers": json.dumps([job]), "script": ""})
    monkeypatch.setattr(known_jobs, "link_on", lambda *_: host)
    monkeypatch.setattr(known_jobs, "engine_if_any", lambda _: DOCKER)
    job_records.save(JobRecord("lab", "train", "docker", None))
    found = known_jobs._one(host, DOCKER, "train")
    assert known_jobs.clean("lab", context(), yes=True) == ["lab/train"]
    assert "docker rm --force --volumes c0ffee" in host.asked["script"]
    assert "train" not in host.asked["script"]
    job["Id"] = "another"
    host.answers["containers"] = json.dumps([job])
    with pytest.raises(NotFound, match="another has its name"):
        found.again()


def test_clean_leaves_a_container_whose_image_calls_it_a_job(
    laptop: Laptop, account: Account, container: ContainerFactory
) -> None:
    name, labels = container.name(), BAKED | {"org.jlremote.user": account.name}
    words = (f"--label={label}={value}" for label, value in labels.items())
    container.engine.docker("run", f"--name={name}", *words, "lab/plain", "true")
    cleaned = whole(laptop, "job", "list", "lab", "--clean", "--yes", "--json")
    assert cleaned.returncode == 0, cleaned
    assert name not in cleaned.stdout.decode() + cleaned.stderr.decode()
    assert container.engine.docker("ps", "--all", "--quiet", f"--filter=name={name}")
