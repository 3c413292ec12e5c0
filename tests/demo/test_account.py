"""The account of the demo's host."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from jlremote.demo.loopback_host import current_account


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
