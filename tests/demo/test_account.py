"""The demo's account, keys and ssh configuration."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from jlremote.demo import command_session
from jlremote.demo.command_session import current_account


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


def entry(shell: str) -> pwd.struct_passwd:
    return pwd.struct_passwd(("ada", "x", 1, 1, "", "/", shell))


@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/bin/false", "/no/such/shell"])
def test_an_account_without_a_usable_shell_gets_sh(
    shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry(shell))
    assert command_session._user_and_shell() == ("ada", "/bin/sh")
