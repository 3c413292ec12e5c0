"""A laptop with a session, and a folder on the host to mount."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.mounts.parts import Desk, LoginCounter, own, remember_session

QUICK = ("ServerAliveInterval 1", "ServerAliveCountMax 3")


@pytest.fixture(scope="session", autouse=True)
def sshfs() -> None:
    """Skip where there is no sshfs, or no FUSE."""
    if shutil.which("sshfs") is None:
        pytest.skip("`sshfs` is not installed")
    if not Path("/dev/fuse").exists():
        pytest.skip("`/dev/fuse` is missing")


@pytest.fixture
def desk(laptop: Laptop, account: Account) -> Iterator[Desk]:
    """A laptop that reaches the host without a detour."""
    yield from sit_down(laptop, account, "lab")


@pytest.fixture
def far_desk(
    laptop: Laptop, account: Account, sshd: SSHServer, keys: Keys, line: Line
) -> Iterator[Desk]:
    """A laptop that reaches the host, called `far`, over `line`, and soon gives it up."""
    laptop.add_host("far", sshd, account, key=keys.private, port=line.port, options=QUICK)
    yield from sit_down(laptop, account, "far")


@pytest.fixture
def quick_desk(laptop: Laptop, account: Account, sshd: SSHServer, keys: Keys) -> Iterator[Desk]:
    """A laptop with ssh settings that give up a silent host, `quick`, after four seconds."""
    laptop.add_host("quick", sshd, account, key=keys.private, options=QUICK)
    yield from sit_down(laptop, account, "quick")


def sit_down(laptop: Laptop, account: Account, host: str) -> Iterator[Desk]:
    remember_session(laptop, "bare", host=host)
    project = account.home / "project"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    own(account, project)
    desk = Desk(laptop, account, project, laptop.folder / "home" / "place")
    try:
        yield desk
    finally:
        # Not with jlr: what a test has broken must not be left to the next one.
        for process in desk.sshfs():
            process.kill()
        for point in laptop.folder.glob("home/*"):
            subprocess.run(("umount", "-l", str(point)), capture_output=True, check=False)


@pytest.fixture
def logins(sshd: SSHServer) -> LoginCounter:
    """Counts logins from now on."""
    before = sshd.log_text().count("Accepted publickey")
    return lambda: sshd.log_text().count("Accepted publickey") - before
