"""A link and a command of different versions: the newer one wins, and the older is told so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import jlremote
from tests.lab.programs import Result
from tests.link.desk import Desk
from tests.link.servers import HostServers

PACKAGE = Path(jlremote.__file__).parent


class Release:
    """Another version of jlr, installed beside this one."""

    def __init__(self, folder: Path, version: str, *, protocol: int | None = None) -> None:
        self._folder = folder
        copy = folder / PACKAGE.name
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        change(copy / "__init__.py", r'__version__ = ".*"', f'__version__ = "{version}"')
        if protocol is not None:
            change(
                copy / "link" / "wire" / "protocol.py", r"PROTOCOL = \d+", f"PROTOCOL = {protocol}"
            )

    def jlr(self, desk: Desk, *words: str) -> Result:
        """Run a command of this version."""
        return desk.laptop.run("env", f"PYTHONPATH={self._folder}", "jlr", *words)


def change(path: Path, old: str, new: str) -> None:
    text, times = re.subn(old, new, path.read_text(encoding="utf-8"))
    assert times == 1, path
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def session(desk: Desk, servers: HostServers) -> Desk:
    servers.start("one")
    desk.start("one")
    return desk


def test_a_newer_command_that_connects_replaces_the_link_and_the_sessions_are_back(
    session: Desk, tmp_path: Path
) -> None:
    old, forward = session.process(), session.forward("one")
    pid = session.server_pid(forward)
    newer = Release(tmp_path, "99.0")
    for words in (("list", "--json"), ("status", "one", "--json")):
        answer = newer.jlr(session, *words)
        assert answer.status == 0, answer
        assert '"state": "up"' in answer.stdout
        assert session.process().pid == old.pid
    answer = newer.jlr(session, "open", "one", "--no-browser")
    assert answer.status == 0, answer
    old.wait(10)
    assert session.forward("one").local_port == forward.local_port
    assert session.server_pid(forward) == pid
    # The command of before works with the newer link as long as they understand each other.
    assert session.run("echo here") == "here\n"
    assert session.process().pid != old.pid


def test_an_older_command_that_the_link_does_not_understand_is_told_what_to_do(
    session: Desk, tmp_path: Path
) -> None:
    older = Release(tmp_path, "0.0.1", protocol=0)
    answer = older.jlr(session, "status", "one")
    assert "0.0.1, which is too old" in answer.stdout
    answer = older.jlr(session, "gpus", "lab")
    assert answer.status == 1, answer
    assert "0.0.1, which is too old" in answer.stderr
    assert "jlr disconnect" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert session.forward("one").state == "up"
    # What the hint says works.
    assert older.jlr(session, "disconnect", "lab").status == 0
    assert session.state() == "no link"
