"""Jobs: named and placed, found, listed and cleaned up, over a host that answers from a table."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.errors import JlrError, NotFound, Unreachable, Usage
from jlremote.gpus import wait
from jlremote.hosts.requests import RunRequest, StartRequest, StopRequest
from jlremote.jobs import begin, known_jobs
from jlremote.jobs.engine_jobs import COMMAND_LABEL
from jlremote.jobs.known_jobs import EngineRefused
from jlremote.laptop import job_records, sessions
from jlremote.laptop.job_records import JobRecord
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.contract import Completed
from jlremote.place.host.kept_jobs import ProcessPlan
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.runtime import JOB_LABEL
from jlremote.remote import sending
from tests.stories.containers.parts import refused, start
from tests.stories.parts import FakeHost, Notes, Person, context

FIELD, RECORD = "\x1f", "\x1e"


def process(name: str, began: int, ended: str = "") -> str:
    fields = (name, "true", *[""] * 4, f"mark-of-{name}", str(began), ended)
    return FIELD.join((*fields, "" if ended else "yes")) + RECORD


def container(name: str, typed: str | None = None) -> dict[str, Any]:
    labels = {JOB_LABEL: name, COMMAND_LABEL: "python x", "org.jlremote.typed": typed or ""}
    return {
        "Id": f"id-of-{name}",
        "Name": f"/{name}",
        "State": {"Status": "running", "StartedAt": "2025-03-01T12:00:00Z"},
        "Config": {"Labels": labels},
    }


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """A host with two process jobs and one in a container."""
    host = FakeHost(
        "lab",
        {
            "processes": process("old", 5, "0 9") + process("new", 7),
            "scheduled": "",
            "containers": json.dumps([container("train")]),
            "script": "",
        },
    )
    monkeypatch.setattr(known_jobs, "link_on", lambda *_: host)
    monkeypatch.setattr(known_jobs, "link_of", lambda *_: host)
    monkeypatch.setattr(known_jobs, "engine_if_any", lambda _: DOCKER)
    return host


def test_jobs_began_by_the_clock_of_their_host(host: FakeHost) -> None:
    before = {job.name: job.since or 0.0 for _, job in known_jobs.listed("lab", context())}
    host.answers["clock"] = f"{time.time() - 7200:.0f}\n"
    now = {job.name: job.since or 0.0 for _, job in known_jobs.listed("lab", context())}
    assert {name: since - before[name] for name, since in now.items()} == dict.fromkeys(now, 7200)


def test_without_an_engine_command_there_are_process_jobs_only(host: FakeHost) -> None:
    host.answers["containers"] = Completed(127, "", "docker: not found")
    assert [job.name for _, job in known_jobs.listed("lab", context())] == ["new", "old"]


def test_an_engine_that_refuses_is_an_error_only_if_nothing_else_was_found(host: FakeHost) -> None:
    host.answers["containers"] = Completed(1, "", "Cannot connect to the Docker daemon at x")
    assert len(list(known_jobs.listed("lab", context()))) == 2
    host.answers["processes"] = ""
    with pytest.raises(EngineRefused):
        list(known_jobs.listed("lab", context()))
    assert not known_jobs.is_taken(host, DOCKER, "train")  # type: ignore[arg-type]


def test_of_several_hosts_one_that_cannot_be_asked_is_noted(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> list[object]:
        raise Unreachable("no route")

    job_records.save(JobRecord("lab", "train", "docker", None))
    monkeypatch.setattr(known_jobs, "_all", lost)
    notes = Notes()
    assert list(known_jobs.listed(None, context(notes))) == []
    assert notes.notes == ["cannot list the jobs of `lab`: no route"]
    with pytest.raises(Unreachable):
        list(known_jobs.listed("lab", context()))


def test_only_jobs_that_are_over_are_cleaned_up(host: FakeHost) -> None:
    job_records.save(JobRecord("lab", "old", "none", None))
    person = Person("no")
    with pytest.raises(JlrError, match="nothing was changed"):
        known_jobs.clean("lab", context(asker=person), yes=False)
    assert "the job lab/old and its output" in person.asked
    assert len(job_records.load_all()) == 1
    assert known_jobs.clean("lab", context(), yes=True) == ["lab/old"]
    assert job_records.load_all() == []


def test_without_a_host_only_the_jobs_of_this_laptop_are_cleaned_up(host: FakeHost) -> None:
    """The job `old` is over, too; the same person has started it on another laptop."""
    job_records.save(JobRecord("lab", "train", "docker", None))
    assert known_jobs.clean(None, context(), yes=True) == []
    job_records.save(JobRecord("lab", "old", "none", None, mark="mark-of-old"))
    assert known_jobs.clean(None, context(), yes=True) == ["lab/old"]


@pytest.mark.parametrize("mark", ["", "of the job before"])
def test_a_job_of_another_laptop_under_a_name_from_here_is_not_cleaned_up(
    host: FakeHost, mark: str
) -> None:
    job_records.save(JobRecord("lab", "old", "none", None, mark=mark))
    assert known_jobs.clean(None, context(), yes=True) == []
    assert "script" not in host.asked


def test_a_job_is_killed_or_deleted_only_after_a_yes(host: FakeHost) -> None:
    job_records.save(JobRecord("lab", "train", "docker", None))
    found = known_jobs.find("train", context())
    for request, lost in (
        (StopRequest(force=True), "the running job lab/"),
        (StopRequest(remove=True), "the output and exit code of lab/"),
    ):
        person = Person("no")
        with pytest.raises(JlrError, match="nothing was changed"):
            known_jobs.stop(found, request, context(asker=person))
        assert lost in person.asked
    assert known_jobs.stop(found, StopRequest(), context()) == ["stopped the job"]


def test_the_latest_job_of_this_laptop_is_the_default(host: FakeHost) -> None:
    job_records.save(JobRecord("lab", "train", "docker", None, began=1.0))
    job_records.save(JobRecord("lab", "new", "none", None, began=2.0))
    host.answers["processes"] = process("new", 7)
    found = known_jobs.find(None, context())
    assert (found.selector, found.job.state) == ("lab/new", "running")
    assert found.again().name == "new"


def test_a_later_job_of_the_same_name_is_told_from_it_by_its_mark(host: FakeHost) -> None:
    job_records.save(JobRecord("lab", "new", "none", None))
    found = known_jobs.find("new", context())
    host.answers["processes"] = process("new", 9, "0 9").replace("mark-of", "another-mark-of")
    for ask in (found.again, found.begun):
        with pytest.raises(NotFound, match="`lab/new` was deleted, and another has its name now"):
            ask()


def test_a_job_that_is_gone_from_the_host_is_forgotten(host: FakeHost) -> None:
    job_records.save(JobRecord("lab", "gone", "docker", None))
    host.answers |= {"processes": "", "containers": "[]"}
    with pytest.raises(NotFound, match="there is no job `gone` on `lab`"):
        known_jobs.find("gone", context())
    assert job_records.load_all() == []


def test_a_session_known_here_takes_precedence_over_a_job(host: FakeHost) -> None:
    sessions.save(SessionRecord("lab", "train", "docker", 8888))
    assert known_jobs.meant("train", context()) is None
    assert known_jobs.meant("lab/train", context()) is None
    assert known_jobs.meant(None, context()) is None


def test_a_selector_of_a_job_is_recognized(host: FakeHost) -> None:
    assert known_jobs.meant("unknown", context()) is None
    found = known_jobs.meant("lab/train", context())
    assert found is not None
    assert found.job.name == "train"
    host.answers |= {"processes": "", "containers": Completed(1, "", "permission denied")}
    assert known_jobs.meant("lab/other", context()) is None


def test_a_name_is_taken_by_its_full_name_only(host: FakeHost) -> None:
    link: Any = host
    assert known_jobs.is_taken(link, DOCKER, "train")
    host.answers |= {"processes": "", "containers": json.dumps([container("a-train", "train")])}
    assert not known_jobs.is_taken(link, DOCKER, "train")


def test_a_refused_deletion_keeps_the_record(host: FakeHost) -> None:
    job_records.save(JobRecord("lab", "train", "docker", None))
    found = known_jobs.find("train", context())
    host.answers["script"] = Completed(1, "", "the daemon is busy")
    with pytest.raises(JlrError, match="cannot delete `lab/train`: the daemon is busy"):
        known_jobs.remove(found)
    assert len(job_records.load_all()) == 1


def runtime(*, inside: str | None = None, **given: Any) -> str:
    return begin._runtime(RunRequest(StartRequest("lab", **given), ("true",), inside)).name


@pytest.mark.parametrize(
    ("command", "stem"),
    [
        (("train.py",), "train"),
        (("python", "train.py", "--lr", "1"), "train"),
        (("python3.11", "-m", "torch.distributed.run", "x"), "run"),
        (("/usr/bin/python", "/srv/work/eval.py"), "eval"),
        (("sh", "-c", "echo x"), "sh"),
        (("torchrun", "fit.py"), "fit"),
        (("nvidia-smi",), "nvidia-smi"),
        (("./a b",), "a-b"),
        (("…",), "job"),
    ],
)
def test_a_job_is_called_after_the_program_that_runs(command: tuple[str, ...], stem: str) -> None:
    assert re.fullmatch(rf"{re.escape(stem)}-[0-9a-f]{{4}}", begin._name(command))


@settings(max_examples=40)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4))
def test_any_command_gives_a_name_that_an_engine_takes(command: list[str]) -> None:
    assert re.fullmatch("[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}", begin._name(tuple(command)))


def test_a_command_without_a_place_is_refused_with_the_three_ways() -> None:
    with pytest.raises(Usage, match="choose where to run") as error:
        runtime()
    assert error.value.hint is not None
    assert all(way in error.value.hint for way in ("--image", "--in", "--runtime none"))


def test_a_session_cannot_be_used_without_containers() -> None:
    with pytest.raises(Usage, match="`--in cont1` needs a container"):
        runtime(inside="cont1", runtime="none")


def test_a_host_without_python_keeps_no_place_of_a_detached_job() -> None:
    begun = start({"script": [refused("", sending.NO_PYTHON)]})
    plan = ProcessPlan("sweep", ("true",), "true", wait={"first": {"why": "none is free"}})
    with pytest.raises(JlrError, match=r"`--wait` needs Python 3\.8 or later on `dgx`"):
        wait.launched(begun.context, plan)
