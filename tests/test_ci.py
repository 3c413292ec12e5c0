"""Continuous integration runs the long attacks and faults once the connection's code changes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

LONG = Path(__file__).parents[1] / ".ci" / "long"
NOON = 1_700_000_000
HOUR = 3600


class Repository:
    """A repository with one commit on `main`, two days old."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("README.md", hours=-48)

    def git(self, *words: str, when: int = NOON) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example")
        dated = {**os.environ, "GIT_COMMITTER_DATE": f"{when} +0000"}
        argv = ("git", *who, *words)
        subprocess.run(argv, cwd=self.folder, check=True, capture_output=True, env=dated)

    def commit(self, path: str, hours: int = 0) -> None:
        """Change one file."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as text:
            text.write("more\n")
        self.git("add", path)
        self.git("commit", "--quiet", "--message", path, when=NOON + hours * HOUR)

    def wants_long_tests(self) -> bool:
        return subprocess.run((LONG,), cwd=self.folder, capture_output=True).returncode == 0


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.mark.parametrize(
    ("path", "long"),
    [("jlremote/link/a.py", True), ("jlremote/ssh/b/c.py", True), ("jlremote/cli/d.py", False)],
)
def test_commits_of_half_a_day_on_the_default_branch_decide(
    repository: Repository, path: str, long: bool
) -> None:
    repository.commit(path, hours=-2)
    repository.commit("docs/one.md")
    assert repository.wants_long_tests() == long
    repository.commit("docs/one.md", hours=24)
    assert not repository.wants_long_tests()


def test_all_commits_of_another_branch_decide(repository: Repository) -> None:
    repository.commit("jlremote/link/before.py")
    repository.git("switch", "--quiet", "--create", "other")
    repository.commit("docs/one.md")
    assert not repository.wants_long_tests()
    repository.commit("jlremote/ssh/two.py", hours=1)
    repository.commit("docs/three.md", hours=48)
    assert repository.wants_long_tests()


def test_where_nothing_can_be_compared_they_are_left_out(
    repository: Repository, tmp_path: Path
) -> None:
    assert not repository.wants_long_tests()
    repository.commit("jlremote/link/a.py")
    shallow = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=1", f"file://{tmp_path}", str(shallow))
    assert subprocess.run((LONG,), cwd=shallow, capture_output=True).returncode == 1
