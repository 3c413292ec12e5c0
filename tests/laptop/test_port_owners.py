"""Records of local ports: private, the latest first, and not more than a bound."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from jlremote.laptop import sessions
from jlremote.laptop.sessions import PortOwner


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a state folder of the test's own, and return where the records go in it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "jlr" / "ports"


def test_a_port_has_one_owner_in_a_file_for_this_user_alone(folder: Path) -> None:
    for name in ("one", "two"):
        sessions.save_port_owner(PortOwner(8888, "dgx", name, None))
    assert [known.owner for known in sessions.PORT_OWNERS.load_all()] == [("dgx", "two", None)]
    [path] = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("local", [0, 65536, "8888"])
def test_a_record_of_no_port_is_passed_over(folder: Path, local: object) -> None:
    sessions.save_port_owner(PortOwner(8888, "dgx", "one", 6006))
    [path] = folder.iterdir()
    path.write_text(path.read_text().replace("8888", repr(local).replace("'", '"')))
    assert sessions.PORT_OWNERS.load_all() == []


def test_the_oldest_beyond_the_bound_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_PORTS", 2)
    for number in range(4):
        sessions.save_port_owner(PortOwner(8888 + number, "dgx", f"c{number}", None, float(number)))
    assert [known.local_port for known in sessions.PORT_OWNERS.load_all()] == [8891, 8890]
