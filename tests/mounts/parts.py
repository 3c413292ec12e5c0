"""Real parts of a mount's tests: a session that a laptop knows, and a folder on the host."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.mounts.system import Linux
from tests.lab.accounts import Account, program_name
from tests.lab.laptop import FOLDERS, Laptop
from tests.lab.programs import Result, lives, wait_until

# What a program on a mount may wait for at most when the host is away.
LIMIT_SECONDS = 45.0
PROJECT = "bare:project"  # of the session that each desk has

LoginCounter = Callable[[], int]


@dataclass
class Desk:
    """A laptop with a session, and a folder `project` on the host."""

    laptop: Laptop
    account: Account
    project: Path
    local: Path

    def jlr(self, *words: str, code: int = 0, timeout: float = 90) -> Result:
        done = self.laptop.jlr(*words, timeout=timeout)
        assert done.status == code, done
        return done

    def mount(self, *words: str, code: int = 0) -> Result:
        """Mount the project, or what `words` say."""
        return self.jlr("mount", str(self.local), *(words or (PROJECT,)), code=code)

    def unmount(self, *words: str, code: int = 0) -> Result:
        return self.jlr("mount", "--unmount", str(self.local), *words, code=code)

    def states(self) -> list[str]:
        return [mount["state"] for mount in json.loads(self.jlr("mount", "--json").stdout)]

    def is_mounted(self, local: Path | None = None) -> bool:
        return str(local or self.local) in Linux().mounted()

    def sshfs(self) -> list[psutil.Process]:
        return [p for p in self.laptop.processes() if program_name(p) == "sshfs"]

    def link(self) -> psutil.Process:
        alive = filter(lives, self.laptop.processes())
        [link] = [p for p in alive if "jlremote.link" in p.cmdline()]
        return link

    def has_project(self, name: str, content: bytes) -> bool:
        return (self.project / name).read_bytes() == content


def remember_session(
    laptop: Laptop,
    name: str,
    runtime: str = "none",
    host: str = "lab",
    *,
    port: int = 8888,
    forwarded: bool = False,
) -> None:
    """Write a session's record, as `jlr start` leaves one and `jlr stop` keeps it."""
    record = SessionRecord(
        host=host,
        name=name,
        runtime=runtime,
        local_port=port,
        ssh_config=str(laptop.ssh_config.resolve()),
        forwarded=forwarded,
    )
    with pytest.MonkeyPatch.context() as patch:
        for variable in FOLDERS:
            patch.setenv(variable, laptop.environment[variable])
        sessions.save(record)


def own(account: Account, path: Path) -> Path:
    """Give a file or a folder, with all that is in it, to the host's user."""
    subprocess.run(("chown", "-R", f"{account.name}:", str(path)), check=True)
    return path


@dataclass(frozen=True)
class Attempt:
    """What a program on a mount saw, and how long that took."""

    seconds: float
    error: int | None
    answer: Any = None


def attempt(*argv: str, patience: float = LIMIT_SECONDS + 15) -> Attempt:
    """Run a program of its own, for what hangs must not hang the tests."""
    began = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, timeout=patience, check=False)
    return Attempt(time.monotonic() - began, done.returncode, done.stdout + done.stderr)


def works(local: Path) -> bool:
    """Return whether a program can list the mount now."""
    return attempt("ls", str(local)).error == 0


def until(condition: Callable[[], bool], what: str, timeout: float = 120) -> None:
    wait_until(condition, what, timeout=timeout)
