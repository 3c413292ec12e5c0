"""The steps of `jlr start` and `jlr open` fit together; the parts are fakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jlremote.containers import jupyter_launch, provision
from jlremote.errors import Busy, JlrError
from jlremote.gpus import allocation
from jlremote.hosts.halted import again
from jlremote.hosts.requests import StartContext, StartRequest
from jlremote.jupyter.endpoint import Endpoint
from jlremote.jupyter.survey import Survey
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.place.runtimes.engine.kinds import ENGINES
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Container
from jlremote.sessions import start
from tests.stories.parts import SERVER, FakeHost, context

CONTAINER = Container("c0ffee", "cont1", True, "2026-01-01", addresses=("10.0.0.2",))
REFUSED = Busy("no local port is free")


def provisioned(start: StartContext, found: Survey) -> tuple[StartContext, Container, Survey]:
    """Create the container by the old tool, as where docker knows no `--gpus`."""
    return replace(start, runtime=Containers(ENGINES["nvidia-docker"])), CONTAINER, found


@pytest.fixture
def reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Endpoint]:
    """Exchange what a start asks of the host; collect where its forward would lead."""
    led: list[Endpoint] = []

    def hold(host: Link, name: str, to: Endpoint, *_: Any, **__: Any) -> None:
        led.append(to)
        raise REFUSED

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(start, "link_to", lambda *_, **__: FakeHost("dgx"))
    monkeypatch.setattr(start, "connect", lambda *_: None)
    monkeypatch.setattr(start, "surveyed", lambda _, runtime, *__: (runtime, Survey(None, None)))
    monkeypatch.setattr(provision, "ensure", provisioned)
    monkeypatch.setattr(jupyter_launch, "ensure", lambda *_: (SERVER, True))
    monkeypatch.setattr(allocation, "keep", lambda *_, **__: None)
    monkeypatch.setattr(start, "hold", hold)
    return led


def theirs(name: str = "jupyter") -> Survey:
    return Survey(replace(CONTAINER, name=name), None, owner="bob")


def test_another_users_session_is_joined_only_on_request(
    reached: list[Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "surveyed", lambda _, runtime, *__: (runtime, theirs("cont1")))
    request = StartRequest("dgx", "cont1", runtime="docker", image="torch")
    with pytest.raises(JlrError, match="`dgx/cont1` belongs to `bob`") as refused:
        start.start(request, context())
    assert "`jlr open dgx/cont1 --as-shared`" in str(refused.value.hint)
    assert reached == []
    with pytest.raises(Busy):
        start.start(replace(request, as_shared=True), context())
    assert len(reached) == 1


def test_a_default_name_that_is_another_users_gets_ones_own(
    reached: list[Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost("dgx", {"script": "ada"})
    looked: list[str] = []

    def look(_: Any, __: Any, name: str, **___: Any) -> Survey:
        looked.append(name)
        return Survey(None, None)

    monkeypatch.setattr(start, "link_to", lambda *_, **__: host)
    monkeypatch.setattr(start, "surveyed", lambda _, runtime, *__: (runtime, theirs()))
    monkeypatch.setattr(start, "survey", look)
    with pytest.raises(Busy):
        start.start(StartRequest("dgx", runtime="docker", image="torch"), context())
    assert set(looked) == {"ada_jupyter"}


RECORD = SessionRecord("dgx", "cont1", "docker", 8901, image="torch")


@pytest.mark.parametrize(
    ("record", "gone", "command"),
    [
        (RECORD, False, "jlr start dgx cont1"),
        (RECORD, True, "jlr start dgx cont1 --image torch"),
        (replace(RECORD, image=None), True, "jlr start dgx cont1"),
        (replace(RECORD, runtime="none", image=None), False, "jlr start dgx cont1 --runtime none"),
        (replace(RECORD, runtime="slurm", image=None), False, "jlr restart dgx/cont1"),
        (replace(RECORD, runtime="slurm apptainer"), True, "jlr restart dgx/cont1"),
    ],
)
def test_the_hint_starts_a_session_as_it_was(
    record: SessionRecord, gone: bool, command: str
) -> None:
    assert again(record, "container-gone" if gone else "down") == f"`{command}` starts it again"
