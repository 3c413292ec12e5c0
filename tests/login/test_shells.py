"""A login shell that speaks another language and prints noise: everything works all the same."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.accounts import Account, claimed_account
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.link.servers import HostServers
from tests.login.parts import PATIENCE, SESSION, started
from tests.long import LONG

NOISE = "echo welcome to '{not json}'; echo oops >&2; printf '\\033]0;owned\\007\\033[2J'"
# What each reads without a person; dash reads nothing, but for what sshd gives it.
STARTUP_FILES = {
    "bash": (".bashrc", f"{NOISE}; set -e; alias ls=false"),
    "dash": (".profile", NOISE),
    "fish": (".config/fish/config.fish", NOISE),
    "tcsh": (".tcshrc", "echo welcome; printf '\\033]0;owned\\007'; set noclobber"),
    "zsh": (".zshenv", f"{NOISE}; setopt noclobber ksharrays"),
}


# fish is least like `sh`.
@pytest.fixture(params=[name if name == "fish" else LONG(name) for name in STARTUP_FILES])
def newcomer(request: pytest.FixtureRequest) -> Iterator[Account]:
    """A user whose login shell greets at length."""
    shell = shutil.which(request.param)
    if shell is None:
        pytest.skip(f"`{request.param}` is not installed")
    with claimed_account(shell) as claimed:
        name, noise = STARTUP_FILES[request.param]
        file = claimed.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{noise}\n{file.read_text() if file.exists() else ''}")
        yield claimed


def test_start_logs_list_and_stop_work(
    laptop: Laptop, sshd: SSHServer, newcomer: Account, keys: Keys
) -> None:
    laptop.add_host("noisy", sshd, newcomer, key=keys.private)
    servers = HostServers(newcomer)
    pid = servers.start(SESSION)
    try:
        (folder,) = (newcomer.home / ".local/state/jlr/servers").glob(f"*/{SESSION}")
        (folder / "jupyter.log").write_text("a line of the log\n")
        greeted = "welcome" in laptop.ssh("noisy", "true").stdout
        assert greeted is not newcomer.shell.endswith("/dash")
        result = started(laptop, "noisy")
        assert "welcome" not in result.stdout + result.stderr
        assert "owned" not in result.stdout + result.stderr
        assert json.loads(laptop.jlr("list", "--json").stdout)[0]["state"] == "up"
        assert laptop.jlr("logs").stdout == "a line of the log\n"
        stopping = laptop.spawn("stop", "--force", "--yes")
        os.waitpid(pid, 0)  # it is our child, and as a zombie it would seem to live
        said, _ = stopping.communicate(timeout=PATIENCE)
        assert stopping.returncode == 0, said
        assert "welcome" not in said
    finally:
        servers.end()


@pytest.mark.parametrize("shell", ["fish", LONG("tcsh")])
def test_startup_files_that_become_another_shell_are_told_by_each_command(
    laptop: Laptop, sshd: SSHServer, keys: Keys, tmp_path: Path, shell: str
) -> None:
    """Those whose stdin is kept open would wait for ever: the other shell waits for its end."""
    file = tmp_path / "file"
    file.touch()
    with claimed_account("/bin/bash") as account:
        (account.home / ".bashrc").write_text(f"exec {shell}\n")
        laptop.add_host("other", sshd, account, key=keys.private)
        config = tmp_path / "config"
        config.write_text(laptop.jlr("config", "ssh").stdout)
        for status, *words in (
            (1, "jlr", "list", "other"),
            (1, "jlr", "shell", "other", "--", "echo", "ran"),
            (1, "jlr", "cp", str(file), "other:file"),
            (1, "jlr", "cp", "-r", "other:", str(tmp_path / "got")),
            (255, "ssh", "-F", str(config), "other.jlr", "echo ran"),
        ):
            failed = laptop.run(*map(str, words))
            assert failed.status == status, failed
            assert f"runs `exec {shell}` for commands" in failed.stderr
            assert f"`case $- in *i*) exec {shell} ;; esac`" in failed.stderr
        (account.home / ".bashrc").write_text(f"case $- in *i*) exec {shell} ;; esac\n")
        assert laptop.jlr("shell", "other", "--", "echo", "ran").stdout == "ran\n"
