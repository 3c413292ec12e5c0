"""Continuous integration runs the tests that take minutes once what they show changes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

LONG = Path(__file__).parents[1] / ".ci" / "long"


class Repository:
    """A repository with one commit on `main`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("README.md")

    def git(self, *words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example")
        subprocess.run(("git", *who, *words), cwd=self.folder, check=True, capture_output=True)

    def commit(self, path: str) -> None:
        """Change one file."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as text:
            text.write("more\n")
        self.git("add", path)
        self.git("commit", "--quiet", "--message", path)

    def wants_long_tests(self) -> bool:
        return subprocess.run((LONG,), cwd=self.folder, capture_output=True).returncode == 0


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.mark.parametrize(
    ("path", "long"),
    [
        ("jlremote/link/a.py", True),
        ("jlremote/ssh/b/c.py", True),
        ("jlremote/runtimes/e.py", True),
        ("jlremote/cli/d.py", False),
    ],
)
def test_the_latest_commit_of_the_default_branch_decides(
    repository: Repository, path: str, long: bool
) -> None:
    repository.commit(path)
    assert repository.wants_long_tests() == long


def test_all_commits_of_another_branch_decide(repository: Repository) -> None:
    repository.commit("jlremote/link/before.py")
    repository.git("switch", "--quiet", "--create", "other")
    repository.commit("docs/one.md")
    assert not repository.wants_long_tests()
    repository.commit("jlremote/ssh/two.py")
    repository.commit("docs/three.md")
    assert repository.wants_long_tests()


def test_where_nothing_can_be_compared_they_are_left_out(
    repository: Repository, tmp_path: Path
) -> None:
    assert not repository.wants_long_tests()
    repository.commit("jlremote/link/a.py")
    shallow = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=1", f"file://{tmp_path}", str(shallow))
    assert subprocess.run((LONG,), cwd=shallow, capture_output=True).returncode == 1
