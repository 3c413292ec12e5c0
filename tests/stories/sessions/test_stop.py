"""`jlr stop` chooses what to end, and refuses to end busy kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Never

import pytest

from jlremote.errors import Busy, JlrError
from jlremote.hosts.requests import StopRequest, stop_command
from jlremote.jupyter.api import JupyterApi, Kernel, NoAnswer
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.survey import Survey
from jlremote.laptop import sessions
from jlremote.laptop.sessions import MOUNTS, MountRecord, PortRecord, SessionRecord
from jlremote.link.wire.status import ForwardStatus
from jlremote.mounts import known_mounts, unmount
from jlremote.mounts.system import Holder, MountPoint
from jlremote.place.clusters.scheduler import SchedulerSilent
from jlremote.place.host.contract import FIELD, Completed
from jlremote.place.host.contract import RECORD as RECORD_END
from jlremote.place.runtimes.runtime import Container, Volume
from jlremote.place.runtimes.table import runtime_named
from jlremote.sessions import losses, stop
from jlremote.sessions.losses import SessionEnding
from tests.link.fakes import new_endpoint, new_server
from tests.stories.parts import FakeHost, Person, context

HERE = Container("a" * 64, "cont1", True, "2026")
RECORD = SessionRecord("dgx", "cont1", "docker", 8901, ports=(PortRecord(6006, 7001),))
NOTHING = Survey(None, None)
OURS = new_server(1)
THEIRS = replace(new_server(2), ours=False)
FORWARDED = replace(new_server(3), ours=False)
FORWARD = ForwardStatus(
    "cont1", None, 8901, "up", 0.0, None, replace(new_endpoint(), server=FORWARDED), None
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


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
    assert stop._server(ending(request_, found(*servers)), forward) == ended


@pytest.mark.parametrize(
    ("request_", "programs", "silent", "message"),
    [
        (StopRequest(remove=True), (), None, "`dgx/cont1` has busy kernels: `a.ipynb`"),
        (
            StopRequest(container=True),
            ("the program `x`", "an open shell"),
            None,
            "`dgx/cont1` runs the program `x`, an open shell",
        ),
        (
            StopRequest(container=True),
            (),
            "no answer",
            "cannot ask `dgx/cont1` for busy kernels: no answer",
        ),
    ],
)
def test_what_works_is_named_and_the_hint_keeps_target_and_options(
    request_: StopRequest, programs: tuple[str, ...], silent: str | None, message: str
) -> None:
    kernels = (Kernel("a.ipynb", "busy", ""), Kernel("b.ipynb", "idle", ""))
    work = losses.Work(() if silent or programs else kernels, programs, silent)
    with pytest.raises(Busy) as caught:
        losses.refuse_if_busy(ending(request_), work)
    command = stop_command("dgx", "cont1", replace(request_, force=True))
    forced = f"`{command}` {'deletes' if request_.remove else 'stops'} it anyway"
    assert (caught.value.message, caught.value.hint) == (message, forced)
    losses.refuse_if_busy(ending(replace(request_, force=True)), work)


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


@pytest.mark.parametrize("runtime", ["slurm", "docker"])
def test_programs_that_cannot_be_asked_for_are_no_reason_to_stop(
    runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Completed(1, "", "srun: error: Unable to contact slurm controller\n")
    host = FakeHost("dgx", {"script": refused})
    survey = Survey(Container("cont1", "cont1", True, "2026", in_job=True, job="12"), None)

    def again(*_: object) -> Survey:
        if runtime == "slurm":
            raise SchedulerSilent("the scheduler does not answer")
        return survey

    monkeypatch.setattr(losses, "survey", again)
    work = losses.work(ending(StopRequest(container=True), survey, runtime, host), None)
    with pytest.raises(Busy, match="cannot ask `dgx/cont1` for programs: srun: error: Unable"):
        losses.refuse_if_busy(ending(StopRequest(container=True)), work)
    losses.refuse_if_busy(ending(StopRequest(force=True)), work)
    assert work.losses == ("programs that could not be listed",)


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
    ("request_", "lost"),
    [
        (StopRequest(), ()),
        (StopRequest(force=True), ("the kernel of `a.ipynb` (idle)",)),
        (StopRequest(container=True), ("the kernel of `a.ipynb` (idle)",)),
        (StopRequest(remove=True, yes=True), ("the kernel of `a.ipynb` (idle)", "all files")),
        (StopRequest(remove=True), ("all files", "keras", "/root/model.pt")),
    ],
)
def test_what_is_lost_is_told_before_it_is(request_: StopRequest, lost: tuple[str, ...]) -> None:
    container = Container("a" * 64, "cont1", True, "2026", volumes=(Volume("/raid", "/data"),))
    changed = """\
A /opt/venv/lib/python3.11/site-packages/keras-3.1.dist-info
C /root
A /root/model.pt
A /data/kept
"""
    host = FakeHost("dgx", {"": changed, "script": changed})
    work = losses.Work((Kernel("a.ipynb", "idle", ""),), whole=request_.ends_container)
    planned = losses.planned(ending(request_, Survey(container, None), host=host), work)
    told = "; ".join(planned.losses)
    assert all(word in told for word in lost)
    assert bool(planned.losses) == bool(lost)
    assert "/data" not in told


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
    held = MountPoint("/home/ada/p", "fuse.sshfs", "dgx:/srv/p")

    def holders(path: str) -> list[Holder]:
        return [Holder(7, "vim", "has a file open in")] if path == held.path else []

    for session in ("cont1", "cont2"):
        folder = held.path if session == "cont1" else "/home/ada/q"
        MOUNTS.save(MountRecord(folder, "/srv/p", "dgx", session, None, False, 0))
    system = SimpleNamespace(mounted=lambda: [held], holders=holders)
    monkeypatch.setattr(unmount, "this_system", lambda: system)
    monkeypatch.setattr(known_mounts, "is_served", lambda record: True)
    planned = losses.planned(ending(request_, found()), losses.Work())
    lost = f"the mount {held.path}: vim (process 7) has a file open in it"
    assert planned.losses == ((lost,) if told else ())


class PortsOnly(FakeHost):
    """A host whose link releases the session's port, and nothing else."""

    def unforward(self, name: str, port: int | None = None) -> bool:
        return (name, port) == ("cont1", None)


@pytest.mark.parametrize("remove", [True, False])
def test_another_users_session_is_stopped_only_by_force(saved: SessionRecord, remove: bool) -> None:
    with pytest.raises(JlrError, match="`dgx/cont1` belongs to `bob`") as refused:
        stop._left(ending(StopRequest(remove=remove), host=PortsOnly("dgx")), "bob")
    hint = str(refused.value.hint)
    assert ("`--force`" in hint, "jlr stop" in hint) == (True, False), "no command to copy"
    assert sessions.find("dgx", "cont1") == saved


def test_the_question_before_anothers_session_ends_says_whose_it_is() -> None:
    container = Container("a" * 64, "cont1", True, "2026")
    theirs = Survey(container, None, owner="bob")
    request = StopRequest(remove=True, force=True, yes=True)
    planned = losses.planned(ending(request, theirs), losses.Work())
    assert planned.question == "Stop and delete the container of dgx/cont1 of `bob`?"
    assert planned.losses[0] == "work of another user, `bob`"


@pytest.fixture
def saved() -> SessionRecord:
    sessions.save(RECORD)
    return RECORD


def test_stop_all_asks_for_no_busy_session_and_names_every_one(
    saved: SessionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.save(replace(saved, name="cont2"))

    def busy(record: SessionRecord, *_: object, named: bool) -> Never:
        raise Busy(f"`{record.name}` is busy", hint=f"`jlr stop dgx/{record.name} --force`")

    monkeypatch.setattr(stop, "_stop", busy)
    monkeypatch.setattr(stop, "_looked", busy)
    person = Person("no")
    for yes in (False, True):
        with pytest.raises(Busy, match="`cont2` is busy") as refused:
            list(stop.stop_all(StopRequest(remove=True, yes=yes), context(asker=person)))
        assert "`cont1` is busy" in refused.value.message
        assert "jlr stop dgx/cont1 --force" in str(refused.value.hint)
    assert not person.asked


@pytest.mark.parametrize(("status", "runs"), [(losses.KILLED, False), (1, True)])
def test_a_killed_script_waits_for_the_engine_to_notice_the_containers_end(
    monkeypatch: pytest.MonkeyPatch, status: int, runs: bool
) -> None:
    dying = replace(found(), container=Container("a" * 64, "cont1", True, "2026"))
    surveys = iter((dying, dying, found()))
    monkeypatch.setattr(losses, "survey", lambda *_: next(surveys))
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert losses.still_runs(FakeHost("dgx"), runtime_named("docker"), "cont1", status) is runs
