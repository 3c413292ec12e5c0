"""`jlr list` asks all hosts at once, asks the user nothing, and reports each session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from jlremote.errors import JlrError, Unreachable
from jlremote.hosts.context import Context
from jlremote.hosts.links import ASKS_NOTHING
from jlremote.jobs import session_job
from jlremote.jupyter.api import Access, Kernel
from jlremote.jupyter.presence import Presence, Present
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.wire.states import ForwardStatus
from jlremote.listing import known_sessions, listing
from jlremote.listing.session_report import SessionReport, of_forward, of_record
from jlremote.mounts import known_mounts
from jlremote.place.host.job import Job
from tests.link.fakes import new_endpoint
from tests.stories.parts import Notes, context


@pytest.fixture(autouse=True)
def hosts(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Give the state that each host's sessions are in."""
    states: dict[str, str] = {}

    def of(records: Sequence[SessionRecord], *_: Any) -> list[SessionReport]:
        return [of_record(record, states.get(record.host, "up")) for record in records]

    def of_stopped(records: Sequence[SessionRecord], _: Any) -> list[SessionReport] | None:
        if states.get(records[0].host) == "disconnected":
            return None
        return [of_record(r, "stopped") for r in records if r.name != "removed"]

    monkeypatch.setattr(known_sessions, "of", of)
    monkeypatch.setattr(known_sessions, "of_stopped", of_stopped)
    monkeypatch.setattr(known_mounts, "reports", lambda *_, **__: [])
    return states


def record(host: str, name: str, used: float, *, forwarded: bool = True) -> None:
    sessions.save(SessionRecord(host, name, "docker", 8888, last_used=used, forwarded=forwarded))


def test_sessions_of_all_hosts_are_listed_the_latest_first() -> None:
    record("dgx", "old", 1.0)
    record("lab", "middle", 2.0)
    record("dgx", "new", 3.0)
    record("dgx", "stopped", 4.0, forwarded=False)
    record("dgx", "removed", 5.0, forwarded=False)
    found = [(r.name, r.state, r.is_default) for r in listing.reports(context())]
    running = [("new", "up", True), ("middle", "up", False), ("old", "up", False)]
    assert found == [("stopped", "stopped", False), *running]


def test_a_host_that_waits_for_the_user_is_noted_once(hosts: dict[str, str]) -> None:
    hosts["dgx"] = "needs-auth"
    record("dgx", "old", 1.0)
    record("dgx", "new", 2.0)
    record("lab", "cont1", 3.0)
    notes = Notes()
    listing.reports(context(notes))
    assert notes.notes == ["`dgx` waits for you: run `jlr list dgx/new` in a terminal"]


def presence(monkeypatch: pytest.MonkeyPatch, found: Presence | JlrError, *queued: Job) -> None:
    def answer(host: str, _: Context) -> Presence:
        if isinstance(found, JlrError):
            raise found
        return found

    monkeypatch.setattr(listing, "presence", answer)
    monkeypatch.setattr(session_job, "read_jobs", lambda _: {job.name: job for job in queued})


def test_sessions_of_other_laptops_follow_those_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record("dgx", "mine", 1.0)
    record("lab", "elsewhere", 2.0)
    there = (Present("mine", "docker", jupyter=True), Present("other", "docker", jupyter=True))
    queued = Job("queued", "waiting", "jupyter lab", job="7", reason="others are before it")
    presence(monkeypatch, Presence((), there), queued, Job("over", "ended", "jupyter lab"))
    found = listing.reports(context(), "dgx")
    assert [(report.name, report.state) for report in found] == [
        ("mine", "up"),
        ("other", "running"),
        ("queued", "queued"),
    ]
    assert found[-1].detail == "job 7 waits: others are before it"


def test_a_host_that_cannot_be_asked_still_lists_the_sessions_of_this_laptop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    presence(monkeypatch, Unreachable("connection refused"))
    with pytest.raises(Unreachable):
        listing.reports(context(), "dgx")
    record("dgx", "mine", 1.0)
    notes = Notes()
    assert [report.name for report in listing.reports(context(notes), "dgx")] == ["mine"]
    assert notes.notes == ["cannot ask `dgx` for other sessions: connection refused"]


def test_an_engine_that_fails_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    presence(monkeypatch, Presence((), (), JlrError("the daemon does not run")))
    notes = Notes()
    assert listing.reports(context(notes), "dgx") == []
    assert notes.notes == ["cannot list its containers: the daemon does not run"]


def test_the_status_of_a_stopped_session_asks_the_user_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_left(record: SessionRecord, its: Context, _: object) -> SessionReport:
        assert its.asker is ASKS_NOTHING
        return of_record(record, "stopped")

    monkeypatch.setattr(known_sessions, "of_left", of_left)
    record("dgx", "cont1", 1.0, forwarded=False)
    assert listing.report("cont1", context()).state == "stopped"


RECORD = SessionRecord("dgx", "cont1", "docker", 8901, image="torch", gpus="all")
FORWARD = ForwardStatus("cont1", None, 8901, "up", 0.0, None, new_endpoint(), None)
EPOCH = "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("access", "detail"),
    [(Access.TOKEN, None), (Access.OPEN, "`dgx`"), (Access.PASSWORD, "password")],
)
def test_the_detail_explains_a_server_without_a_token(access: Access, detail: str | None) -> None:
    report = of_forward(RECORD, FORWARD, access)
    assert report.access == str(access)
    assert report.detail is None if detail is None else detail in (report.detail or "")


def test_the_json_form_has_all_fields_in_a_fixed_order() -> None:
    report = replace(of_record(RECORD, "up"), kernels=(Kernel("a.ipynb", "idle", EPOCH),))
    told = report.to_json()
    assert list(told) == [
        *("name", "host", "container", "runtime", "state", "since", "detail", "url"),
        *("page", "local_port", "image", "gpus", "kernels", "access", "idle_stop", "awake"),
        *("job", "node", "time_left", "reason", "mounts", "ports"),
    ]
    asked = {"notebook": "a.ipynb", "state": "idle", "last_activity": EPOCH}
    assert told["kernels"] == [asked | {"id": "", "running": None}]
