"""Records are read as they were written, found by typed names, and other files left alone."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.laptop import job_records, known_names, sessions
from jlremote.laptop.job_records import JobRecord
from jlremote.laptop.record_files import LONGEST_STEM, file_name, matching, selected
from jlremote.laptop.sessions import PORT_OWNERS, PortOwner, SessionRecord

RECORD = SessionRecord("me@dgx", "cont1", "docker", 8888, image="torch", last_used=3.0)
DOCUMENT = {"format": 1} | asdict(RECORD)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a state folder of the test's own, and return where records go in it."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return state / "jlr" / "sessions"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    sessions.load_all()  # makes the folder
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_disk_without_room_for_a_record_is_reported(folder: Path) -> None:
    """Such a disk still takes an empty file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9, before[1]))
    try:
        with pytest.raises(JlrError, match="cannot write"):
            sessions.check_writable()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(folder.iterdir()) == []


def test_records_are_read_as_they_were_written_the_latest_first(folder: Path) -> None:
    older = replace(RECORD, name="older", last_used=1.0)
    sessions.save(older)
    sessions.save(RECORD)
    assert sessions.load_all() == [RECORD, older]
    assert sessions.find("me@dgx", "cont1") == RECORD
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    for _ in range(2):
        sessions.delete(RECORD)
    assert sessions.load_all() == [older]


@pytest.mark.parametrize(
    "host", ["../../etc/x", "a/b", "x" * 300, "ü" * 200, "[::1]:22", "a+b", "%2e"]
)
def test_any_host_makes_a_file_in_the_folder_and_no_two_the_same(folder: Path, host: str) -> None:
    sessions.save(replace(RECORD, host=host))
    sessions.save(replace(RECORD, host=host + "x"))
    assert {record.host for record in sessions.load_all()} == {host, host + "x"}
    assert len(list(folder.iterdir())) == 2


def changed(**values: Any) -> str:
    return json.dumps(DOCUMENT | values)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        json.dumps(DOCUMENT)[:-20],
        "null",
        "[]",
        "7",
        b"\xff\xfe\x00binary",
        "[" * 100_000,
        changed(format=2),
        changed(local_port="8888"),
        changed(local_port=True),
        changed(local_port=0),
        changed(local_port=70_000),
        changed(host=None),
        changed(forwarded="yes"),
        changed(more=1),
        changed(ssh_config="a\0b"),
        json.dumps({key: value for key, value in DOCUMENT.items() if key != "name"}),
    ],
    ids=lambda content: repr(content[:24]),
)
def test_a_file_without_a_record_is_ignored_and_kept(folder: Path, content: str | bytes) -> None:
    sessions.save(RECORD)
    path = write(folder, "foreign.json", content)
    before = path.read_bytes()
    assert sessions.load_all() == [RECORD]
    assert sessions.unreadable() == [path]
    assert path.read_bytes() == before


def test_files_without_an_end_are_passed_over(folder: Path) -> None:
    """In a process of its own, which a FIFO would hold and an endless file would fill."""
    sessions.save(RECORD)
    os.mkfifo(folder / "fifo.json")
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to("/nonexistent")
    (folder / "endless.json").symlink_to("/dev/zero")
    with (folder / "large.json").open("wb") as large:
        large.truncate(1 << 36)
    code = "from jlremote.laptop.sessions import *; print(len(load_all()), len(unreadable()))"
    listing = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, timeout=60
    )
    assert listing.stdout == "1 5\n", listing.stderr


def test_the_latest_that_is_forwarded_is_chosen_by_default() -> None:
    sessions.save(replace(RECORD, name="stopped", forwarded=False, last_used=9.0))
    sessions.save(RECORD)
    assert sessions.latest() == RECORD


def test_a_read_only_folder_is_reported_before_a_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.check_writable()
    assert list(folder.iterdir()) == []
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/self")
    with pytest.raises(JlrError, match="cannot write"):
        sessions.check_writable()


@pytest.mark.parametrize("local", [0, 65536, "8888"])
def test_a_port_has_one_owner_and_a_record_of_no_port_is_passed_over(
    folder: Path, local: object
) -> None:
    for name in ("one", "two"):
        sessions.save_port_owner(PortOwner(8888, "dgx", name, None))
    assert PORT_OWNERS.load_all() == [PortOwner(8888, "dgx", "two", None)]
    [path] = folder.with_name("ports").iterdir()
    path.write_text(path.read_text().replace("8888", json.dumps(local)))
    assert PORT_OWNERS.load_all() == []


def test_the_oldest_owners_beyond_the_bound_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_PORTS", 2)
    for number in range(4):
        sessions.save_port_owner(PortOwner(8888 + number, "dgx", f"c{number}", None, float(number)))
    assert [known.local_port for known in PORT_OWNERS.load_all()] == [8891, 8890]


def test_completion_knows_the_names_of_records_the_latest_first(folder: Path) -> None:
    assert known_names.session_names() == []
    for age, name in enumerate(("50-a.b_c", "cont1")):
        sessions.save(replace(RECORD, host="user@[::1]:22", name=name))
        [file] = folder.glob(f"*{name}.json")
        os.utime(file, (1e9 - age, 1e9 - age))
    for name in ("trial", ".draft+x.json.1f", "notes.json", "a+b+c.json"):
        (folder / name).touch()
    sessions.save(replace(RECORD, name="50% + a/b"))
    names = [("user@[::1]:22", "50-a.b_c"), ("user@[::1]:22", "cont1")]
    assert known_names.session_names() == names


FULL = JobRecord("dgx", "anna_tf", "docker", None, typed="tf")
SHORT = JobRecord("dgx", "tf", "docker", None)
ELSEWHERE = JobRecord("lab", "torch", "docker", None, typed="tf")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("anna_tf", [FULL]),
        ("dgx/anna_tf", [FULL]),
        ("tf", [SHORT]),
        ("dgx/tf", [SHORT]),
        ("lab/tf", [ELSEWHERE]),
        ("lab/torch", [ELSEWHERE]),
        ("dgx", []),
        ("dgx/", []),
        ("", []),
    ],
)
def test_a_full_name_takes_precedence_over_a_typed_one(
    selector: str, found: list[JobRecord]
) -> None:
    assert matching([FULL, SHORT, ELSEWHERE], selector) == found


def test_a_typed_name_on_two_hosts_must_be_given_with_its_host() -> None:
    with pytest.raises(Usage, match="`tf` is the name of several jobs") as caught:
        selected([FULL, ELSEWHERE], "tf", "jobs")
    assert caught.value.hint == "name one: `dgx/anna_tf`, `lab/torch`"
    assert selected([FULL, ELSEWHERE], "lab/tf", "jobs") is ELSEWHERE


def test_the_latest_job_is_chosen_by_default() -> None:
    with pytest.raises(NotFound, match="no job was started here"):
        job_records.choose(None)
    job_records.save(JobRecord("dgx", "first", "docker", None, began=1.0))
    job_records.save(JobRecord("dgx", "second", "docker", None, began=2.0))
    assert [record.name for record in job_records.load_all()] == ["second", "first"]
    latest = job_records.choose(None)
    assert latest is not None
    assert latest.name == "second"
    assert job_records.choose("third") is None


@given(st.text(), st.text(), st.text(), st.text(), st.sampled_from((1, 50)))
def test_two_records_never_share_a_file_and_its_name_is_short_and_safe(
    host: str, name: str, other: str, more: str, times: int
) -> None:
    file = file_name(host * times, name * times)
    same = (host, name) == (other, more)
    assert (file == file_name(other * times, more * times)) == same
    assert len(file) <= LONGEST_STEM + len(".json")
    assert file.isascii()
    assert "/" not in file
