"""What of the demo's folder stays."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from jlremote.demo import own_files


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path / "ssh_config"


def test_what_jlr_and_jupyter_made_goes_with_the_folder(config: Path) -> None:
    folder = own_files.make(config)
    for name in (".jupyter", ".ipynb_checkpoints"):
        (folder / name).mkdir()
        (folder / name / "x").touch()
    own_files.clear(config)
    assert not folder.exists()
    own_files.clear(config)  # once more


def test_what_a_person_made_stays_whatever_it_is(config: Path) -> None:
    folder = own_files.make(config)
    (folder / "runs").mkdir()
    (folder / ".env").touch()
    os.mkfifo(folder / "queue")
    own_files.clear(config)
    assert sorted(path.name for path in folder.iterdir()) == [".env", "queue", "runs"]


def test_a_notebook_of_ours_stays_once_it_was_changed(config: Path) -> None:
    folder = own_files.make(config)
    [notebook] = folder.iterdir()
    notebook.write_text(notebook.read_text().replace("This JupyterLab", "Our JupyterLab"))
    own_files.clear(config)
    assert list(folder.iterdir()) == [notebook]
