"""Programs run with a time limit, and their output in the error when they fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.lab.place import LabError

NEEDED = ("dockerd", "docker", "debootstrap", "sshd", "ssh", "ssh-keygen", "iptables", "setpriv")
# For programs in Go, as engines and their clients are: they spend a third of their time on garbage.
LESS_GARBAGE = "400"
# Waiting ends as soon as its condition holds; beside other tests that may take a while.
PATIENCE = 60.0
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Result:
    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        words = " ".join(self.argv)
        return f"`{words}` ended with {self.status}\n{self.stdout}\n{self.stderr}".rstrip()

    def checked(self, status: int = 0, *said: str) -> Result:
        """Check how the program ended and what it said on stderr; return the result."""
        assert self.status == status, self
        for words in said:
            assert words in self.stderr, self
        return self


def missing() -> list[str]:
    """Return why the lab cannot run here, a reason each; empty when it can."""
    absent = [name for name in NEEDED if shutil.which(name, path=SYSTEM_PATH) is None]
    reasons = [f"`{name}` is not installed" for name in absent]
    if os.geteuid() != 0:
        reasons.append("the lab needs root")
    if system_engine_runs():
        reasons.append("this machine's own dockerd runs, and a second one would break its firewall")
    return reasons


def system_engine_runs() -> bool:
    """Return whether the pid that the system's dockerd left is a dockerd that lives."""
    try:
        pid = Path("/run/docker.pid").read_text(encoding="utf-8").strip()
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "dockerd"
    except OSError:
        return False


def attempt(
    *argv: str,
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    cwd: Path | None = None,
) -> Result:
    """Run a program to its end, however it ends, and to the end of its output.

    A process that it leaves behind with its stdout or stderr open is waited for, as a pipe in a
    shell would wait. What takes longer than `timeout` is killed.
    """
    try:
        done = subprocess.run(
            argv,
            input=stdin if stdin is not None else "",
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            env=env,
            cwd=cwd,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        took = f"`{' '.join(argv)}` took more than {timeout:.0f} s"
        raise LabError(f"{took}: {late.stderr!r}") from None
    return Result(argv, done.returncode, done.stdout, done.stderr)


def run(
    *argv: str, timeout: float = 60, env: Mapping[str, str] | None = None, stdin: str | None = None
) -> str:
    """Run a program that must end with 0 and return its stdout."""
    result = attempt(*argv, timeout=timeout, env=env, stdin=stdin)
    if result.status != 0:
        raise LabError(str(result))
    return result.stdout


def wait_ended(processes: Sequence[psutil.Process], timeout: float) -> list[psutil.Process]:
    """Wait until processes have ended, and return those that have not within `timeout` seconds.

    One that only waits to be reaped has: the first process of a container may take seconds for it.
    """
    limit = time.monotonic() + timeout
    while (alive := [process for process in processes if lives(process)]) and (
        time.monotonic() < limit
    ):
        time.sleep(0.02)
    return alive


def end(processes: Sequence[psutil.Process]) -> None:
    """Kill processes, some of which may have ended by themselves, and wait for their end."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    wait_ended(processes, 5)


def lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def load() -> float:
    """Return how many programs want each core, 1 at least: all takes so many times longer."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_until(condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> None:
    """Return as soon as `condition` holds.

    It is asked again after three times as long as it took, or a tenth of the time so far, but a
    second at most: the cores are left to what is waited for.

    Raises:
        LabError: it did not within `timeout` seconds.
    """
    began = asked = time.monotonic()
    while not condition():
        answered = time.monotonic()
        if answered > began + timeout:
            raise LabError(f"{what} did not happen within {timeout:.0f} s")
        time.sleep(min(1.0, max(0.01, 3 * (answered - asked), (answered - began) / 10)))
        asked = time.monotonic()


def write_program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def start_time(pid: int) -> str:
    """Return when a process began, as /proc tells it."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return stat.rpartition(")")[2].split()[19]
