"""Completion finds the names of the records in the names of their files."""

import os
from pathlib import Path

import pytest

from jlremote.laptop import known_names, paths, sessions


def save(host: str, name: str, age: float = 0) -> None:
    folder = paths.state_directory() / "sessions"
    before = set(folder.glob("*"))
    sessions.save(sessions.SessionRecord(host, name, runtime="docker", local_port=8888))
    for file in set(folder.glob("*")) - before:
        os.utime(file, (1e9 - age, 1e9 - age))


@pytest.fixture(params=["XDG_STATE_HOME", "HOME"])
def laptop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv(request.param, str(tmp_path))
    return tmp_path


def test_the_names_are_those_of_the_records_the_latest_first(laptop: Path) -> None:
    assert known_names.session_names() == []
    save("me@dgx", "cont1", age=10)
    save("user@[::1]:22", "50-a.b_c", age=5)
    save("dgx+", "cont")
    save("dgx", "50% + a/b")
    names = [("dgx+", "cont"), ("user@[::1]:22", "50-a.b_c"), ("me@dgx", "cont1")]
    assert known_names.session_names() == names


def test_a_file_without_a_record_has_no_name(laptop: Path) -> None:
    save("dgx", "cont1")
    folder = paths.state_directory() / "sessions"
    for name in ("trial", ".draft+x.json.1f", "notes.json", "a+b+c.json"):
        (folder / name).touch()
    assert known_names.session_names() == [("dgx", "cont1")]
