"""The survey of a session, from what its host's engine and its container print."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from jlremote.errors import Busy, JlrError
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.survey import gone, refuse_without_job, survey
from jlremote.place.host.contract import USER_LABEL, Completed
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import JOB_LABEL, SESSION_LABEL, Container
from tests.jupyter.parts import DIRECTORY, probed, server
from tests.stories.parts import FakeHost

RUNTIME = Containers(DOCKER)
HERE = Container("c0ffee", "cont1", running=True, started_at="2026")
MISSING = Completed(1, "[]\n", "Error: No such container: cont1\n")
FAULT = "gpu fault\037Failed to initialize NVML: Unknown Error\036"


def inspected(*, running: bool = True) -> str:
    container: dict[str, Any] = {
        "Id": "c0ffee",
        "Name": "/cont1",
        "State": {"Running": running, "StartedAt": "2026-01-01T00:00:00Z"},
        "Config": {"Image": "torch"},
        "HostConfig": {},
        "NetworkSettings": {"Networks": {"bridge": {"IPAddress": "172.17.0.2"}}},
    }
    return json.dumps([container])


def test_a_container_and_its_server_are_found_in_one_round_trip() -> None:
    host = FakeHost("dgx", {"container": inspected(), "inside": probed(server())})
    found = survey(host, RUNTIME, "cont1")
    assert found.container is not None
    assert found.container.id == "c0ffee"
    assert found.server is not None
    assert found.server.port == 8888
    assert found.gpu_fault is None
    assert list(host.asked) == ["container", "inside", "user"]


@pytest.mark.parametrize(
    ("labels", "owner"),
    [
        ({SESSION_LABEL: "cont1", USER_LABEL: "bob"}, "bob"),
        ({JOB_LABEL: "cont1", USER_LABEL: "bob"}, "bob"),
        ({SESSION_LABEL: "cont1", USER_LABEL: "ada"}, None),
        ({SESSION_LABEL: "cont1", USER_LABEL: ""}, None),
        # of the image that it was made from: nobody's
        ({SESSION_LABEL: "other", USER_LABEL: "bob"}, None),
        ({USER_LABEL: "bob"}, None),
    ],
)
def test_a_container_that_jlr_made_for_another_user_has_an_owner(
    labels: dict[str, str], owner: str | None
) -> None:
    told = json.loads(inspected())
    told[0]["Config"]["Labels"] = labels
    answers: dict[str, Completed | str]
    answers = {"container": json.dumps(told), "inside": probed(server()), "user": "ada\n"}
    assert survey(FakeHost("dgx", answers), RUNTIME, "cont1").owner == owner


def test_where_the_engine_runs_no_probe_the_servers_are_unknown() -> None:
    inside = Completed(126, "", "OCI runtime exec failed: cannot fork")
    found = survey(FakeHost("dgx", {"container": inspected(), "inside": inside}), RUNTIME, "cont1")
    with pytest.raises(Busy, match="cannot ask what runs in `cont1`: OCI runtime exec failed"):
        _ = found.server


def test_a_missing_container_is_looked_for_by_its_typed_name() -> None:
    answers: dict[str, Completed | str]
    answers = {"container": MISSING, "inside": Completed(1, "", ""), "called": "anna_tf\nlab_tf\n"}
    host = FakeHost("dgx", answers)
    found = survey(host, RUNTIME, "cont1", typed="tf")
    assert (found.container, found.called) == (None, ("anna_tf", "lab_tf"))
    assert "org.jlremote.typed=tf" in host.asked["called"]


def test_lost_gpus_are_reported_if_they_are_checked() -> None:
    host = FakeHost("dgx", {"container": inspected(), "inside": probed(server()) + FAULT})
    found = survey(host, RUNTIME, "cont1", check_gpus=True)
    assert found.gpu_fault is not None
    assert "has lost its GPUs" in found.gpu_fault.message
    assert "docker restart cont1" in str(found.gpu_fault.hint)
    assert "nvidia-smi" in host.asked["inside"]


def findings(*, ended: str = "", exit_status: int | None = None) -> Findings:
    return Findings(DIRECTORY, "jupyter-lab", exit_status, (), ended)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (findings(ended="idle", exit_status=0), "idle-stopped"),
        (findings(ended="stopped", exit_status=137), "stopped"),
        (findings(exit_status=0), "stopped"),
        (findings(exit_status=1), "jupyter-dead"),
        (findings(), "jupyter-dead"),
        (None, "jupyter-dead"),
    ],
)
def test_a_missing_server_is_explained_by_its_folder(found: Findings | None, state: str) -> None:
    error = gone("dgx", HERE, found)
    assert error.state == state
    assert (error.hint or "").startswith("`jlr start dgx cont1` starts it again")
    if state == "jupyter-dead":
        assert "`jlr logs dgx/cont1` has its log" in (error.hint or "")


def test_a_server_that_was_killed_for_its_memory_is_told_with_the_limit() -> None:
    full = replace(HERE, out_of_memory="killed: out of memory (limit 300 MB)")
    error = gone("dgx", full, findings(exit_status=137))
    assert error.message.endswith("was killed: out of memory (limit 300 MB)")
    assert gone("dgx", HERE, findings(exit_status=137)).message.endswith("was killed")


@pytest.mark.parametrize(
    ("job", "state", "command"),
    [
        (replace(HERE, waits=True), "queued", "`jlr start dgx cont1`"),
        (replace(HERE, running=False, in_job=True), "job-ended", "`jlr start dgx cont1 --slurm …`"),
    ],
)
def test_what_to_do_for_a_session_without_its_job_is_told_with_its_host(
    job: Container, state: str, command: str
) -> None:
    with pytest.raises(JlrError, check=lambda error: error.state == state) as refused:
        refuse_without_job("dgx", "cont1", job)
    assert command in (refused.value.hint or "")
