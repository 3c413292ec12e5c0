"""`jlr restart` gives a session what it had, and refuses what would leave nothing to start."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.errors import JlrError
from jlremote.hosts.requests import StartRequest, StopRequest
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.survey import Survey
from jlremote.laptop.sessions import PortRecord, SessionRecord
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.runtime import Container
from jlremote.selection import session_selection
from jlremote.sessions import restart as workflow
from tests.link.fakes import new_server
from tests.stories.parts import FakeHost, Notes, context

PORTS = (PortRecord(6006, 7001), PortRecord(9, 9, on_host=True), PortRecord(7860, 1, auto=True))
RECORD = SessionRecord("dgx", "cont1", "none", 8901, ports=PORTS)
SERVER = replace(new_server(1), idle_stop=7200, called="/home/me/venv/bin/python")
RUNS = Survey(None, Findings("/tmp/jlr-0/cont1", "jupyter-lab", None, (SERVER,)))
GOES = Container("1", "cont1", True, "then", options=ContainerOptions(remove=True))
AGAIN = StopRequest(again=True)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stand in for what is asked and done; the session's Jupyter is left running by a stop."""
    calls: list[Any] = []
    monkeypatch.setattr(workflow, "link_of", lambda *_: None)
    monkeypatch.setattr(workflow, "stop", lambda name, request, _: calls.append((name, request)))

    def start(request: StartRequest, _: object) -> SimpleNamespace:
        calls.append(request)
        return SimpleNamespace(started_here=False)

    monkeypatch.setattr(workflow, "start", start)
    return calls


def restart(
    monkeypatch: pytest.MonkeyPatch,
    request: StopRequest = AGAIN,
    record: SessionRecord = RECORD,
    found: Survey = RUNS,
    notes: Notes | None = None,
) -> None:
    monkeypatch.setattr(session_selection, "chosen", lambda *_, **__: record)
    monkeypatch.setattr(workflow, "survey", lambda *_: found)
    workflow.restart("cont1", request, context(notes))


def test_a_restarted_session_has_its_ports_idle_stop_and_python(
    done: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    forced = replace(AGAIN, force=True)
    restart(monkeypatch, forced)
    had = StartRequest(
        *("dgx", "cont1"), runtime="none", ports=PORTS[:2], idle_stop=7200, python=SERVER.called
    )
    assert done == [("dgx/cont1", forced), had]


def test_a_jupyter_that_a_stop_leaves_running_is_not_called_restarted(
    done: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JlrError, match="jlr did not launch the Jupyter") as caught:
        restart(monkeypatch)
    assert caught.value.hint == "`jlr restart dgx/cont1 --force` ends it, too"
    assert len(done) == 2


@pytest.mark.parametrize(
    ("record", "found", "kind", "why"),
    [
        (replace(RECORD, runtime="docker"), replace(RUNS, container=GOES), JlrError, "--rm"),
        (replace(RECORD, runtime="slurm"), RUNS, JlrError, "plan of the job"),
        (RECORD, replace(RUNS, owner="anna"), JlrError, "belongs to `anna`"),
    ],
)
def test_what_would_be_gone_or_is_anothers_is_not_stopped(
    record: SessionRecord,
    found: Survey,
    kind: type[JlrError],
    why: str,
    done: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workflow, "link_of", lambda *_: FakeHost("dgx", {"script": "no plan"}))
    with pytest.raises(kind, match=why) as caught:
        restart(monkeypatch, record=record, found=found)
    assert "`jlr stop`" not in (caught.value.hint or "")
    assert done == []
