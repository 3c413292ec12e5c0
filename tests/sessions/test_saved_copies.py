"""A copy of a notebook goes where the person says, whatever the container calls the notebook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.containers import Container
from tests.lab.laptop import Laptop
from tests.output.parts import line
from tests.sessions.parts import Session, failed, started

CODE = "$(touch pwned)"


@pytest.fixture(scope="module")
def session(file_laptop: Laptop, here: Container) -> Session:
    return started(file_laptop, here)


def plant(here: Container, notebook: str) -> None:
    """Record that a cell of a notebook of that name has run, as a hostile container can."""
    told = line("code", {"code": CODE, "execution_count": 1}, notebook=notebook, time=4e9)
    write = 'cd /tmp/jlr-0/*/output && printf "%s" "$1" >planted.jsonl'
    here.execute("sh", "-c", write, "sh", told.decode())


@pytest.mark.parametrize(
    ("notebook", "file"),
    [
        (".bash_profile", "bash_profile.ipynb"),
        ("a/.ssh", "ssh.ipynb"),
        ("../../evil.ipynb", "evil.ipynb"),
        ("a\\b:c.ipynb", "a_b_c.ipynb"),
        ("..", "unnamed.ipynb"),
        ("x" * 300, f"{'x' * 194}.ipynb"),
    ],
)
def test_a_container_does_not_name_a_hidden_file_or_one_elsewhere(
    session: Session, here: Container, tmp_path: Path, notebook: str, file: str
) -> None:
    plant(here, notebook)
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    saved = session.laptop.jlr("output", session.name, "--save", str(folder), "--json")
    assert json.loads(saved.stdout)["file"] == str(folder / file), saved
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [folder / file]
    [cell] = json.loads((folder / file).read_text("utf-8"))["cells"]
    assert "".join(cell["source"]) == CODE


def test_a_container_does_not_choose_a_file_to_overwrite(
    session: Session, here: Container, tmp_path: Path
) -> None:
    """With `--force` neither: what is overwritten was named by the person."""
    plant(here, "mine.ipynb")
    mine, elsewhere = tmp_path / "mine.ipynb", tmp_path / "elsewhere"
    command = ("output", session.name, "--save")
    mine.write_text("mine")
    for force in ((), ("--force",)):
        refused = session.laptop.jlr(*command, str(tmp_path), *force)
        failed(refused, 2, f"`{mine}` exists", f"`--save {mine} --force`")
    mine.unlink()
    mine.symlink_to(elsewhere)
    failed(session.laptop.jlr(*command, str(tmp_path)), 2, f"`{mine}` exists")
    assert not elsewhere.exists()
    assert session.laptop.jlr(*command, str(mine), "--force").status == 0
    assert not elsewhere.exists()
    assert mine.stat().st_mode & 0o777 == 0o644
    assert json.loads(mine.read_text("utf-8"))["cells"]
