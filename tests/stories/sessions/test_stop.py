"""`jlr stop` chooses what to end, and refuses to end busy kernels."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.hosts.requests import StopRequest
from jlremote.jupyter.api import JupyterApi, Kernel, NoAnswer
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.survey import Survey
from jlremote.laptop.sessions import MOUNTS, MountRecord, PortRecord, SessionRecord
from jlremote.link.wire.states import ForwardStatus
from jlremote.mounts import known_mounts
from jlremote.place.host.contract import FIELD, Completed
from jlremote.place.host.contract import RECORD as RECORD_END
from jlremote.place.runtimes.runtime import KILLED, Container
from jlremote.place.runtimes.table import runtime_named
from jlremote.sessions import losses, stop
from jlremote.sessions.losses import SessionEnding
from tests.link.fakes import new_endpoint, new_server
from tests.stories.parts import FakeHost

HERE = Container("a" * 64, "cont1", True, "2026")
RECORD = SessionRecord("dgx", "cont1", "docker", 8901, ports=(PortRecord(6006, 7001),))
NOTHING = Survey(None, None)
OURS = new_server(1)
THEIRS = replace(new_server(2), ours=False)
FORWARDED = replace(new_server(3), ours=False)
FORWARD = ForwardStatus(
    "cont1", None, 8901, "up", 0.0, None, replace(new_endpoint(), server=FORWARDED), None
)


def ending(
    request: StopRequest, found: Survey = NOTHING, runtime: str = "docker", host: Any = None
) -> SessionEnding:
    link: Any = host or FakeHost("dgx")
    return SessionEnding(link, runtime_named(runtime), RECORD, request, found)


def found(*servers: Server) -> Survey:
    return Survey(None, Findings("/tmp/jlr-0/cont1", "jupyter-lab", None, servers))


@pytest.mark.parametrize(
    ("servers", "forward", "request_", "ended"),
    [
        ((OURS, FORWARDED), FORWARD, StopRequest(), FORWARDED),
        ((OURS, THEIRS), None, StopRequest(), OURS),
        ((THEIRS,), None, StopRequest(), None),
        ((THEIRS,), None, StopRequest(container=True), THEIRS),
        ((THEIRS,), None, StopRequest(remove=True), THEIRS),
        ((), FORWARD, StopRequest(force=True), None),
    ],
)
def test_the_forwarded_server_is_ended_or_else_the_one_that_jlr_launched(
    servers: tuple[Server, ...],
    forward: ForwardStatus | None,
    request_: StopRequest,
    ended: Server | None,
) -> None:
    assert stop._server(replace(ending(request_, found(*servers)), forward=forward)) == ended


@pytest.mark.parametrize(("servers", "silent"), [((), None), ((OURS,), "no answer")])
def test_a_server_that_has_just_ended_has_no_kernels_to_ask_for(
    servers: tuple[Server, ...], silent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(JupyterApi):
        def kernels(self) -> tuple[Kernel, ...]:
            raise NoAnswer("no answer")

    container = Container("a" * 64, "cont1", True, "2026")
    before = replace(found(OURS), container=container)
    monkeypatch.setattr(
        losses, "survey", lambda *_: replace(before, findings=found(*servers).findings)
    )
    host, api = FakeHost("dgx", {"": "", "script": ""}), Silent(8901, OURS)
    assert losses.work(ending(StopRequest(), before, "none", host), api).silent == silent


@pytest.mark.parametrize(
    "now", [None, *(replace(HERE, running=False, paused=p) for p in (False, True))]
)
def test_a_container_that_has_ended_since_the_survey_has_no_programs_to_ask_for(
    now: Container | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another stop may have ended it; one that is paused still has its programs."""
    monkeypatch.setattr(losses, "survey", lambda *_: Survey(now, None))
    host = FakeHost("dgx", {"script": Completed(1, "", "container abc is not running\n")})
    request = StopRequest(container=True)
    work = losses.work(ending(request, Survey(HERE, None), host=host), None)
    told = "container abc is not running" if now is not None and now.paused else None
    assert (work.unseen, work.whole) == (told, told is not None)


@pytest.mark.parametrize("runtime", ["slurm", "slurm apptainer", "none"])
def test_with_a_session_in_a_job_all_that_runs_in_the_job_ends(runtime: str) -> None:
    """Without its own options, and also once Jupyter has ended."""
    stat = "50 (bash) S 49 50 50 34817 -1 0 0"
    shell = f"process{FIELD}{stat}{FIELD}/bin/bash\0{RECORD_END}"
    host = FakeHost("dgx", {"script": f"self{FIELD}9{RECORD_END}{shell}"})
    survey = Survey(Container("cont1", "cont1", True, "2026", in_job=True, job="12"), None)
    seen = losses.work(ending(StopRequest(), survey, runtime, host), None)
    in_job = runtime != "none"
    assert seen.programs == (("an open shell",) if in_job else ())
    assert ("SLURM_JOB_ID=12" in host.asked.get("script", "")) == in_job


def test_a_server_that_was_started_by_hand_is_only_ended_on_request() -> None:
    assert ending(StopRequest()).ends(OURS)
    assert not ending(StopRequest()).ends(THEIRS)
    for request in (StopRequest(force=True), StopRequest(container=True), StopRequest(remove=True)):
        assert ending(request).ends(THEIRS)


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (StopRequest(force=True), True),
        (StopRequest(force=True, remove=True), True),
        (StopRequest(remove=True), False),  # a busy mount stays
    ],
)
def test_programs_that_a_forced_stop_takes_a_mount_from_are_named(
    request_: StopRequest, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = "/home/ada/p"

    def holders(path: str) -> list[str]:
        return ["vim (process 7) has a file open in it"] if path == held else []

    for session in ("cont1", "cont2"):
        folder = held if session == "cont1" else "/home/ada/q"
        MOUNTS.save(MountRecord(folder, "/srv/p", "dgx", session, None, False, 0))
    system = SimpleNamespace(mounted=lambda: [held], holders=holders)
    monkeypatch.setattr(known_mounts, "this_system", lambda: system)
    monkeypatch.setattr(known_mounts, "is_served", lambda record: True)
    planned = losses.planned(ending(request_, found()), losses.Work())
    lost = f"the mount {held}: vim (process 7) has a file open in it"
    assert planned.losses == ((lost,) if told else ())


def test_the_question_before_anothers_session_ends_says_whose_it_is() -> None:
    container = Container("a" * 64, "cont1", True, "2026")
    theirs = Survey(container, None, owner="bob")
    request = StopRequest(remove=True, force=True, yes=True)
    planned = losses.planned(ending(request, theirs), losses.Work())
    assert planned.question == "Stop and delete the container of dgx/cont1 of `bob`?"
    assert planned.losses[0] == "work of another user, `bob`"


@pytest.mark.parametrize(("status", "runs"), [(KILLED, False), (1, True)])
def test_a_killed_script_waits_for_the_engine_to_notice_the_containers_end(
    monkeypatch: pytest.MonkeyPatch, status: int, runs: bool
) -> None:
    dying = replace(found(), container=Container("a" * 64, "cont1", True, "2026"))
    surveys = iter((dying, dying, found()))
    monkeypatch.setattr(losses, "survey", lambda *_: next(surveys))
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert losses.still_runs(FakeHost("dgx"), runtime_named("docker"), "cont1", status) is runs
