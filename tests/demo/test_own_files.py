"""What of the demo's folder stays, and the account of its host."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
from pathlib import Path

import pytest

from jlremote.demo import own_files
from jlremote.demo.loopback_host import current_account
from jlremote.demo.own_files import NOTEBOOK, is_as_made, notebook


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for name in ("tmp", "run"):
        (tmp_path / name).mkdir()
    return tmp_path / "run" / "ssh_config"


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


@pytest.mark.parametrize(("added", "as_made"), [(None, True), ("", True), ("6 * 7", False)])
def test_a_notebook_with_own_words_is_the_persons(
    tmp_path: Path, added: str | None, as_made: bool
) -> None:
    saved = json.loads(notebook())
    for cell in saved["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)  # as JupyterLab does
    if added is not None:
        saved["cells"].append({"cell_type": "code", "source": [added], "outputs": []})
    (tmp_path / NOTEBOOK).write_text(json.dumps(saved))
    assert is_as_made(tmp_path / NOTEBOOK) is as_made


@pytest.mark.parametrize("text", ["", "[]", '{"cells": [1]}'])
def test_a_file_of_its_name_that_is_no_notebook_is_the_persons(tmp_path: Path, text: str) -> None:
    (tmp_path / NOTEBOOK).write_text(text)
    assert not is_as_made(tmp_path / NOTEBOOK)


def test_the_account_is_the_current_user_with_the_demos_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JLR_HOST", "x")
    monkeypatch.setenv("SSH_AUTH_SOCK", "x")
    monkeypatch.setenv("JUPYTER_TOKEN", "x")
    monkeypatch.setenv("KEPT", "x")
    here = current_account(tmp_path)
    assert (here.user, here.folder) == (pwd.getpwuid(os.getuid()).pw_name, tmp_path)
    assert here.environment["KEPT"] == "x"
    assert here.environment["IPYTHONDIR"].startswith(str(tmp_path)), "not below the home folder"
    assert not {"JLR_HOST", "SSH_AUTH_SOCK", "JUPYTER_TOKEN"} & here.environment.keys()


@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/bin/false", "/no/such/shell"])
def test_an_account_without_a_usable_shell_gets_sh(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = pwd.struct_passwd(("ada", "x", 1, 1, "", "/", shell))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    here = current_account(tmp_path)
    assert (here.user, here.shell) == ("ada", "/bin/sh")
