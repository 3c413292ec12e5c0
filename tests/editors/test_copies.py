"""Programs that copy files over ssh, with the SFTP server that a container lacks."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import asyncssh
import pytest

from tests.editors.conftest import Clients
from tests.lab.accounts import Account
from tests.long import WANTED

NAMES = ("it's a name", 'with "quotes"', "é\n$(id)", "-n")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with odd names, modes and times, and links."""
    top = tmp_path_factory.mktemp("copies") / "tree"
    (top / "below").mkdir(parents=True)
    for name in NAMES:
        (top / name).write_text(name, encoding="utf-8")
    (top / "below" / "large").write_bytes(os.urandom(5_000_000))
    (top / "below" / "large").chmod(0o750)
    os.utime(top / "below" / "large", (1e9, 1e9))
    (top / "empty").touch()
    return top


def same(one: Path, other: Path) -> None:
    names = [sorted(str(path.relative_to(top)) for path in top.rglob("*")) for top in (one, other)]
    assert names[0] == names[1]
    for path in one.rglob("*"):
        twin = other / path.relative_to(one)
        if path.is_file():
            assert twin.read_bytes() == path.read_bytes()
        assert twin.stat().st_mode == path.stat().st_mode
        assert int(twin.stat().st_mtime) == int(path.stat().st_mtime)


def test_scp_keeps_names_modes_and_times_both_ways(
    clients: Clients, tree: Path, tmp_path: Path
) -> None:
    scp = ("scp", "-F", str(clients.config), "-rp")
    clients.ssh(clients.name, "rm -rf /var/tmp/sent")
    sent = clients.run(*scp, str(tree), f"{clients.name}:/var/tmp/sent")
    assert sent.returncode == 0, sent
    got = clients.run(*scp, f"{clients.name}:/var/tmp/sent", str(tmp_path / "got"))
    assert got.returncode == 0, got
    same(tree, tmp_path / "got")


def test_rsync_git_and_the_old_scp_work_on_the_host(
    clients: Clients, account: Account, tree: Path, tmp_path: Path
) -> None:
    ssh = f"ssh -F {clients.config}"
    old = ("scp", "-O", "-F", str(clients.config), "-rp")
    assert clients.run(*old, str(tree / "below"), "lab.jlr:old").returncode == 0
    done = clients.run(*old, "lab.jlr:old", str(tmp_path / "old"))
    assert done.returncode == 0, done
    same(tree / "below", tmp_path / "old")
    clients.ssh("lab.jlr", "git init -q --bare repo")
    script = f"""set -e
cd {tmp_path}; export GIT_SSH_COMMAND='{ssh}'
git clone -q lab.jlr:repo here; cd here; cp {tree}/below/large .
git -c user.name=a -c user.email=a@example add large
git -c user.name=a -c user.email=a@example commit -qm one
git push -q origin HEAD:main; git ls-remote origin main
"""
    pushed = clients.run("sh", "-c", script)
    assert b"refs/heads/main" in pushed.stdout, pushed
    if clients.run("sh", "-c", "command -v rsync").returncode == 0:
        copied = clients.run("rsync", "-a", "-e", ssh, f"{tree}/", "lab.jlr:synced/")
        assert copied.returncode == 0, copied
        same(tree, account.home / "synced")


@pytest.fixture
def plain(clients: Clients, tmp_path: Path) -> str:
    """A configuration for programs with an SSH library of their own."""
    told = clients.laptop.jlr("config", "ssh", "--plain")
    assert not re.search("Include|Match|%", told.stdout), told
    config = tmp_path / "plain"
    config.write_text(f"Host *\n    ForwardAgent no\n{told.stdout}", encoding="utf-8")
    return str(config)


def test_asyncssh_and_openssh_read_the_plain_blocks_too(
    clients: Clients, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in clients.laptop.environment.items():
        monkeypatch.setenv(name, value)

    async def folder() -> object:
        async with asyncssh.connect(clients.name, config=plain) as connection:
            return (await connection.run("pwd")).stdout

    assert asyncio.run(folder()) == "/srv\n"
    done = clients.run("ssh", "-F", plain, "-o", "StrictHostKeyChecking=yes", "lab.jlr", "echo it")
    assert done.stdout == b"it\n", done


# Those that sshd, engines and shells make something of, and with JLR_LONG=1 all.
CODES = range(256) if WANTED else (0, 1, 2, 77, 126, 127, 128, 137, 141, 255)


def test_asyncssh_sends_signals_and_gets_every_exit_code(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in clients.laptop.environment.items():
        monkeypatch.setenv(name, value)

    async def codes() -> list[int | None]:
        async with asyncssh.connect(
            "lab.jlr", config=str(clients.config), host_key_alias="jlr"
        ) as connection:
            return [(await connection.run(f"exit {code}")).exit_status for code in CODES]

    async def interrupted() -> tuple[str, int | None]:
        async with asyncssh.connect(
            clients.name, config=str(clients.config), host_key_alias="jlr"
        ) as connection:
            trap = "trap 'echo got it; exit 9' USR1; echo ready; while :; do sleep 0.1; done"
            process = await connection.create_process(trap)
            assert await process.stdout.readline() == "ready\n"
            process.send_signal("USR1")
            told = await process.stdout.read()
            await process.wait_closed()
            return told, process.exit_status

    assert asyncio.run(interrupted()) == ("got it\n", 9)
    assert asyncio.run(codes()) == [*CODES]
