"""Jobs in containers: what `inspect` tells of them, and scripts that count bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.jobs.engine_jobs import COMMAND_LABEL, GPUS_LABEL, ContainerJobs, _beyond, read
from jlremote.place.runtimes.engine.kinds import DOCKER, PODMAN
from jlremote.place.runtimes.runtime import JOB_LABEL, START_LABEL
from tests.place.host.shells import run_sh

BEGAN, ENDED = "2025-03-01T12:00:00.123456789Z", "2025-03-01T12:01:00.5Z"
YEAR_1 = "0001-01-01T00:00:00Z"


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


@pytest.mark.parametrize(
    ("status", "facts", "expected"),
    [
        ("running", {"ExitCode": 0}, ("running", 1740830400.0, None, None, None)),
        ("paused", {}, ("running", 1740830400.0, None, None, None)),
        ("created", {"StartedAt": YEAR_1, "ExitCode": 0}, ("created", None, None, None, None)),
        ("exited", {"ExitCode": 3}, ("ended", 1740830400.0, 1740830460.0, 3, None)),
        (
            "exited",
            {"ExitCode": 137, "OOMKilled": True, "Error": "x"},
            ("ended", 1740830400.0, 1740830460.0, 137, "killed: its memory was used up"),
        ),
        (
            "exited",
            {"ExitCode": 128, "Error": "no such device"},
            ("ended", 1740830400.0, 1740830460.0, 128, "no such device"),
        ),
    ],
)
def test_a_job_is_read_as_the_engine_inspects_it(
    status: str, facts: dict[str, Any], expected: tuple[object, ...]
) -> None:
    (job,) = read(inspected(status, **{"FinishedAt": ENDED, **facts}))
    assert (job.state, job.since, job.ended, job.exit_code, job.detail) == expected
    assert (job.name, job.container, job.command) == ("train", "train", "python train.py")
    assert (job.gpus, job.mark) == (None, "f00")


def test_an_engine_without_jobs_prints_nothing() -> None:
    assert read("") == []


def test_podmans_init_signals_one_process_so_a_shell_signals_all() -> None:
    assert ContainerJobs(DOCKER).signal("train", "INT") == "docker kill --signal=INT train"
    by_podman = ContainerJobs(PODMAN).signal("train", "INT")
    assert by_podman.startswith("podman exec train sh -c ")
    assert by_podman.endswith("|| podman kill --signal=INT train")
    assert ContainerJobs(PODMAN).signal("train", "KILL") == "podman kill --signal=KILL train"


@settings(max_examples=20)
@given(st.integers(0, 20), st.integers(0, 20))
def test_the_bytes_that_were_shown_are_left_out_of_each_stream(out: int, err: int) -> None:
    show = "{ printf 0123456789 >&5; printf abcdefghij; }"
    done = run_sh("sh", _beyond(show, out, err))
    assert (done.stdout, done.stderr) == ("0123456789"[out:], "abcdefghij"[err:])
