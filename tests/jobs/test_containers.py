"""Jobs in containers: what `inspect` tells of them, and scripts that count bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.jobs.containers import (
    COMMAND_LABEL,
    GPUS_LABEL,
    ContainerJobs,
    _beyond,
    read,
)
from jlremote.place.runtimes.engine.kinds import DOCKER, PODMAN
from jlremote.place.runtimes.runtime import JOB_LABEL, START_LABEL
from tests.place.host.shells import run_sh

BEGAN, ENDED = "2025-03-01T12:00:00.123456789Z", "2025-03-01T12:01:00.5Z"


def inspected(status: str, **state: Any) -> str:
    labels = {
        JOB_LABEL: "train",
        START_LABEL: "f00",
        COMMAND_LABEL: "python train.py",
        GPUS_LABEL: "",
    }
    return json.dumps(
        [
            {
                "Id": "c0ffee",
                "Name": "/train",
                "State": {"Status": status, "StartedAt": BEGAN, **state},
                "Config": {"Labels": labels},
            }
        ]
    )


def test_a_job_that_runs_has_no_end_and_no_exit_code() -> None:
    (job,) = read(inspected("running", ExitCode=0, FinishedAt="0001-01-01T00:00:00Z"))
    assert (job.name, job.state, job.command) == ("train", "running", "python train.py")
    assert (job.exit_code, job.ended, job.over) == (None, None, False)
    assert job.since == 1740830400.0
    assert (job.container, job.gpus) == ("train", None)


@pytest.mark.parametrize("status", ["paused", "restarting"])
def test_a_paused_or_restarting_job_counts_as_running(status: str) -> None:
    (job,) = read(inspected(status))
    assert job.state == "running"


def test_a_job_that_ended_has_its_exit_code_and_its_length() -> None:
    (job,) = read(inspected("exited", ExitCode=3, FinishedAt=ENDED))
    assert (job.state, job.exit_code, job.over, job.detail) == ("ended", 3, True, None)
    assert job.since is not None
    assert job.ended is not None
    assert job.ended - job.since == 60


def test_a_job_that_was_only_created_has_not_begun() -> None:
    (job,) = read(inspected("created", StartedAt="0001-01-01T00:00:00Z", ExitCode=0))
    assert (job.state, job.since, job.exit_code, job.over) == ("created", None, None, False)


@pytest.mark.parametrize(
    ("state", "detail"),
    [
        ({"OOMKilled": True, "Error": "x"}, "killed: its memory was used up"),
        ({"Error": "no such device"}, "no such device"),
        ({"Error": ""}, None),
    ],
)
def test_the_reason_of_an_end_is_reported(state: dict[str, Any], detail: str | None) -> None:
    (job,) = read(inspected("exited", ExitCode=137, FinishedAt=ENDED, **state))
    assert job.detail == detail


def test_an_engine_without_jobs_prints_nothing() -> None:
    assert read("") == []


def test_json_has_each_attribute_of_a_job() -> None:
    (job,) = read(inspected("exited", ExitCode=0, FinishedAt=ENDED))
    assert (job.to_json()["exit_code"], job.mark) == (0, "f00")
    assert set(job.to_json()) == {*vars(job)}


def test_one_job_is_found_by_its_full_name_and_by_the_typed_one() -> None:
    script = ContainerJobs(DOCKER).tell("train")
    assert f"label={JOB_LABEL}=train" in script
    assert "label=org.jlremote.typed=train" in script
    assert "typed" not in ContainerJobs(DOCKER).tell()


def test_podmans_init_signals_one_process_so_a_shell_signals_all() -> None:
    assert ContainerJobs(DOCKER).signal("train", "INT") == "docker kill --signal=INT train"
    by_podman = ContainerJobs(PODMAN).signal("train", "INT")
    assert by_podman.startswith("podman exec train sh -c ")
    assert by_podman.endswith("|| podman kill --signal=INT train")
    assert ContainerJobs(PODMAN).signal("train", "KILL") == "podman kill --signal=KILL train"


def test_a_forced_stop_kills_and_another_one_asks_first() -> None:
    jobs = ContainerJobs(DOCKER)
    assert jobs.stop("train", force=True) == jobs.signal("train", "KILL")
    assert "docker stop" in jobs.stop("train", force=False)
    assert "docker rm" in jobs.remove("train")


@settings(max_examples=20)
@given(st.integers(0, 20), st.integers(0, 20))
def test_the_bytes_that_were_shown_are_left_out_of_each_stream(out: int, err: int) -> None:
    show = "{ printf 0123456789 >&5; printf abcdefghij; }"
    done = run_sh("sh", _beyond(show, out, err))
    assert (done.stdout, done.stderr) == ("0123456789"[out:], "abcdefghij"[err:])
