"""Facts about this machine, on a machine whose programs the test has written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import JlrError, Unreachable
from jlremote.link.wire.status import LinkStatus
from jlremote.mounts import sshfs
from jlremote.storage import sessions
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.doctor import laptop_facts
from tests.workflow.parts import context


class NoSSHFS:
    """A system without sshfs."""

    def sshfs(self) -> str:
        raise JlrError("`sshfs` is not installed")


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
    monkeypatch.setattr(laptop_facts, "open_secrets", lambda deadline: None)
    monkeypatch.setattr(laptop_facts, "this_system", NoSSHFS)
    monkeypatch.setattr("jlremote.workflow.forward.browser.trouble", lambda name: f"no {name}")
    return tmp_path


def test_what_is_missing_is_a_fact_and_no_error(machine: Path) -> None:
    seen = laptop_facts.look(context(), None)
    assert seen.ssh == "OpenSSH_9.2p1, OpenSSL 3"
    assert isinstance(seen.sshfs, JlrError)
    assert (seen.keychain, seen.keychain_answers, seen.sessions) == (None, False, ())
    assert seen.folders is None
    assert seen.state_folder.startswith(str(machine))
    assert (seen.free_bytes or 0) > 0
    (machine / "bin" / "ssh").unlink()
    assert laptop_facts.look(context(), None).ssh is None


def test_an_ssh_that_hangs_counts_as_missing(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "bin" / "ssh").write_text("#!/bin/sh\nread line\nexec /bin/sleep 5\n")
    monkeypatch.setattr(sshfs, "ANSWER_SECONDS", 0.05)
    assert laptop_facts._ssh() is None


def test_folders_that_others_may_read_are_reported(machine: Path) -> None:
    state = machine / "XDG_STATE_HOME"
    state.chmod(0o500)
    unusable = machine / "XDG_STATE_HOME" / "jlr"
    state.chmod(0o700)
    unusable.write_text("a file where the folder should be")
    assert laptop_facts.look(context(), None).folders is not None


@pytest.mark.parametrize(
    ("config", "browser"),
    [
        ("", "no None"),
        ('[defaults]\nbrowser = "firefox"\n', "no firefox"),
        ('[defaults]\nbrowser = "none"\n', None),
        ('[hosts.lab]\nbrowser = "none"\n', None),
        ("wrong", "no None"),
    ],
)
def test_the_browser_is_that_of_the_settings(
    machine: Path, config: str, browser: str | None
) -> None:
    folder = machine / "XDG_CONFIG_HOME" / "jlr"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(config)
    seen = laptop_facts.look(context(), "lab")
    assert seen.browser == browser
    assert (seen.settings is not None) is (config == "wrong")


def linked(answer: LinkStatus | JlrError) -> Any:
    class Link:
        def status(self) -> LinkStatus:
            if isinstance(answer, JlrError):
                raise answer
            return answer

    return lambda *_: Link()


def test_a_session_is_listed_with_the_state_of_its_link(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions.save(SessionRecord("lab", "cont1", "docker", 8888))
    monkeypatch.setattr(laptop_facts, "link_of", linked(Unreachable("no link")))
    (known,) = laptop_facts.look(context(), None).sessions
    assert (known.name, known.forwarded, known.state) == ("lab/cont1", True, None)
    status = LinkStatus("reconnecting", 0.0, "no route", (), ())
    monkeypatch.setattr(laptop_facts, "link_of", linked(status))
    (known,) = laptop_facts.look(context(), None).sessions
    assert (known.state, known.detail) == ("reconnecting", "no route")


def test_a_record_that_cannot_be_read_is_named(machine: Path) -> None:
    sessions.save(SessionRecord("lab", "cont1", "docker", 8888))
    (file,) = (machine / "XDG_STATE_HOME" / "jlr" / "sessions").rglob("*.json")
    file.write_text("not JSON")
    seen = laptop_facts.look(context(), None)
    assert (seen.sessions, seen.unreadable) == ((), (str(file),))
