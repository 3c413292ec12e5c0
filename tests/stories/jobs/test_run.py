"""Where a job runs and how it is called, decided before or by a survey of the host."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.errors import JlrError, Usage
from jlremote.hosts.requests import RunRequest, StartRequest
from jlremote.jobs import begin, begin_process
from jlremote.place.host.kept_jobs import ProcessPlan
from jlremote.place.runtimes.engine_containers import CONTAINER_NAME
from jlremote.remote import sending
from tests.stories.containers.parts import refused, start


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
    assert CONTAINER_NAME.fullmatch(begin._name(tuple(command)))


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
        begin_process.launched(begun.context, plan)
