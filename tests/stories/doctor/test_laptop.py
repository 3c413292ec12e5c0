"""Checks of this machine, on a machine whose programs the test has written."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from jlremote.doctor import laptop
from jlremote.doctor.diagnosis import Diagnosis, Finding
from jlremote.errors import JlrError
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.mounts import sshfs


class NoSSHFS:
    """A system without sshfs."""

    def sshfs(self) -> str:
        raise JlrError("`sshfs` is not installed", hint="`apt install sshfs`")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with its own folders, an `ssh`, and nothing else."""
    for variable in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        folder = tmp_path / variable
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(variable, str(folder))
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    ssh = programs / "ssh"
    ssh.write_text("#!/bin/sh\necho 'OpenSSH_9.2p1, OpenSSL 3' >&2\n")
    ssh.chmod(0o755)
    monkeypatch.setattr(laptop, "open_secrets", lambda deadline: None)
    monkeypatch.setattr(laptop, "this_system", NoSSHFS)
    monkeypatch.setattr("jlremote.forwards.browser.trouble", lambda name: f"no {name}")
    return tmp_path


def look(host: str | None = None) -> dict[str, Finding]:
    found = Diagnosis().judged(laptop.GROUP, laptop.CHECKS, host)
    return {finding.check: finding for finding in found}


def test_what_is_missing_is_a_warning_that_says_what_to_do(machine: Path) -> None:
    found = look()
    marks = {check: str(finding.mark) for check, finding in found.items()}
    lacks = dict.fromkeys(("sshfs", "keychain", "browser"), "warning")
    assert marks == dict.fromkeys(marks, "ok") | lacks
    assert all(found[check].mend for check in lacks)
    assert found["ssh"].text == "OpenSSH_9.2p1, OpenSSL 3"
    assert found["folders"].text.startswith(str(machine))
    assert found["sessions"].text == "none"
    (machine / "bin" / "ssh").unlink()
    assert (look()["ssh"].mark, bool(look()["ssh"].mend)) == ("warning", True)


def test_an_ssh_that_hangs_counts_as_missing(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "bin" / "ssh").write_text("#!/bin/sh\nread line\nexec /bin/sleep 5\n")
    monkeypatch.setattr(sshfs, "ANSWER_SECONDS", 0.05)
    assert look()["ssh"].mark == "warning"


def test_folders_that_cannot_be_used_are_a_fault_and_a_full_disk_a_warning(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 1000**2))
    assert (look()["folders"].mark, bool(look()["folders"].mend)) == ("warning", True)
    shutil.rmtree(machine / "XDG_STATE_HOME" / "jlr")
    (machine / "XDG_STATE_HOME" / "jlr").write_text("a file where the folder should be")
    found = look()
    assert (found["folders"].mark, found["sessions"].mark) == ("failed", "skipped")


@pytest.mark.parametrize(
    ("config", "browser"),
    [
        ("", "no None"),
        ('[defaults]\nbrowser = "firefox"\n', "no firefox"),
        ('[defaults]\nbrowser = "none"\n', "a browser opens"),
        ('[hosts.lab]\nbrowser = "none"\n', "a browser opens"),
        ("wrong", "no None"),
    ],
)
def test_the_browser_is_that_of_the_settings(machine: Path, config: str, browser: str) -> None:
    folder = machine / "XDG_CONFIG_HOME" / "jlr"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(config)
    found = look("lab")
    assert found["browser"].text == browser
    assert found["settings"].exit_code == (2 if config == "wrong" else 0)


def test_a_record_that_cannot_be_read_is_named(machine: Path) -> None:
    sessions.save(SessionRecord("lab", "cont1", "docker", 8888))
    (file,) = (machine / "XDG_STATE_HOME" / "jlr" / "sessions").rglob("*.json")
    file.write_text("not JSON")
    found = look()["sessions"]
    assert (found.mark, found.text) == ("warning", f"records that cannot be read: {file}")
