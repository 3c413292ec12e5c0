"""Reports of this laptop's sessions, as their link and their servers answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from jlremote.containers import recording
from jlremote.errors import ConnectionTimedOut, JlrError, NeedsAuthentication, NotFound
from jlremote.hosts.links import connected_status
from jlremote.jupyter.api import AccessRefused, JupyterApi, Kernel, NoAnswer
from jlremote.jupyter.recorder import Recording
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.wire.states import ForwardStatus, LinkStatus
from jlremote.listing import known_sessions
from jlremote.listing.session_report import SessionReport
from tests.link.fakes import new_endpoint
from tests.stories.parts import Answering, context

RECORD = SessionRecord("dgx", "cont1", "docker", 8901)
UP = ForwardStatus("cont1", None, 8901, "up", 0.0, None, new_endpoint(), None)
KERNEL = Kernel("a.ipynb", "busy", "2026-01-01T00:00:00Z", id="7")


class FakeLink(Answering):
    """A link with some forwards, which may find another state when it checks one."""

    name = "lab"

    def __init__(self, *held: ForwardStatus, checked: ForwardStatus | JlrError | None) -> None:
        self.held = held
        self.checked = checked

    def status(self, *, connect: bool = False, patience: float | None = None) -> LinkStatus:
        return LinkStatus("up", 0.0, None, self.held, ())

    def check(self, session: str) -> ForwardStatus | None:
        if isinstance(self.checked, JlrError):
            raise self.checked
        return self.checked


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Let Jupyter answer one question after the other: with kernels, or with an error."""
    prepared: list[Any] = []

    def kernels(_: JupyterApi) -> tuple[Kernel, ...]:
        answer = prepared.pop(0)
        if isinstance(answer, JlrError):
            raise answer
        return (answer,)

    monkeypatch.setattr(JupyterApi, "kernels", kernels)
    monkeypatch.setattr(JupyterApi, "accepted_name", lambda _, name: name)
    yield prepared
    assert not prepared


def reported(
    monkeypatch: pytest.MonkeyPatch,
    link: FakeLink,
    record: SessionRecord = RECORD,
    recorder: str = "on",
) -> SessionReport:
    now = Recording(recorder, {"7": 65.4} if recorder == "on" else {})
    monkeypatch.setattr(recording, "recording_of", lambda *_: now)
    monkeypatch.setattr(known_sessions, "link_of", lambda *_: link)
    [report] = known_sessions.of([record], context(), connected_status)
    return report


def test_a_server_that_wants_a_password_has_unknown_kernels(
    monkeypatch: pytest.MonkeyPatch, answers: list[Any]
) -> None:
    answers.append(AccessRefused("Jupyter asks for its password"))
    report = reported(monkeypatch, FakeLink(UP, checked=None))
    assert (report.state, report.access, report.kernels) == ("up", "password", None)


def test_a_silent_server_that_is_still_there_is_down(
    monkeypatch: pytest.MonkeyPatch, answers: list[Any]
) -> None:
    answers.append(NoAnswer("no answer"))
    turned_away = replace(UP, failure="nothing listens there")
    report = reported(monkeypatch, FakeLink(turned_away, checked=turned_away))
    assert (report.state, report.detail) == ("down", "no answer (nothing listens there)")


@pytest.mark.parametrize(
    ("failure", "state"),
    [
        (NotFound("gone", state="container-gone"), "container-gone"),
        (JlrError("gone", state="jupyter-dead"), "jupyter-dead"),
        (JlrError("idle", state="idle-stopped"), "idle-stopped"),
        (NotFound("paused", state="paused"), "paused"),
        (JlrError("something else"), "down"),
    ],
)
def test_a_failed_check_gives_the_state(
    monkeypatch: pytest.MonkeyPatch, answers: list[Any], failure: JlrError, state: str
) -> None:
    answers.append(NoAnswer("no answer"))
    report = reported(monkeypatch, FakeLink(UP, checked=failure))
    assert (report.state, report.detail, report.url) == (state, failure.message, None)


def test_a_forward_that_is_not_up_is_checked_once_more(
    monkeypatch: pytest.MonkeyPatch, answers: list[Any]
) -> None:
    answers.append(KERNEL)
    dead = replace(UP, state="jupyter-dead")
    assert reported(monkeypatch, FakeLink(dead, checked=UP)).state == "up"
    assert reported(monkeypatch, FakeLink(dead, checked=None)).state == "jupyter-dead"


def test_a_forward_that_cannot_be_restored_gives_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise NotFound("the container `cont1` is gone", state="container-gone")

    monkeypatch.setattr(known_sessions, "bring_back", fail)
    report = reported(monkeypatch, FakeLink(checked=None))
    assert (report.state, report.detail) == ("container-gone", "the container `cont1` is gone")


@pytest.mark.parametrize(
    "why", [ConnectionTimedOut("no answer"), NeedsAuthentication("a password")]
)
def test_a_stopped_session_of_a_host_that_is_not_reached_is_stopped_and_not_asked_for(
    why: JlrError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> LinkStatus:
        raise why

    # A link that does no more than tell its state: a script for it is a fault.
    monkeypatch.setattr(known_sessions, "link_of", lambda *_: FakeLink(checked=None))
    report = known_sessions.of_left(replace(RECORD, forwarded=False), context(), refuse)
    told = f"its host was not asked: {why.message}"
    assert (report.state, report.detail) == ("stopped", told)
