"""A link and a command of different versions: the command is told what to do."""

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

    def __init__(self, folder: Path, version: str) -> None:
        self._folder = folder
        copy = folder / PACKAGE.name
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        change(copy / "__init__.py", r'__version__ = ".*"', f'__version__ = "{version}"')

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


def test_a_command_of_another_version_is_told_what_to_do_and_that_works(
    session: Desk, tmp_path: Path
) -> None:
    forward = session.forward("one")
    pid = session.server_pid(forward)
    other = Release(tmp_path, "99.0")
    answer = other.jlr(session, "status", "one")
    assert "this is jlr 99.0" in answer.stdout
    answer = other.jlr(session, "gpus", "lab")
    assert answer.status == 1, answer
    assert "this is jlr 99.0" in answer.stderr
    assert "jlr disconnect" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert session.forward("one").state == "up"
    assert other.jlr(session, "disconnect", "lab").status == 0
    assert session.state() == "no link"
    answer = other.jlr(session, "open", "one", "--no-browser")
    assert answer.status == 0, answer
    assert other.jlr(session, "disconnect", "lab").status == 0
    assert session.run("echo here") == "here\n"
    assert session.forward("one").local_port == forward.local_port
    assert session.server_pid(session.forward("one")) == pid
