"""Accounts of the remote host: ordinary users who may use the lab's engine, never root."""

from __future__ import annotations

import pwd
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from jlremote.gpus import leases
from tests.lab.engine import GROUP
from tests.lab.place import LabError, open_lock, root, try_lock
from tests.lab.programs import end, lives, run

MOST_ACCOUNTS = 32


@dataclass(frozen=True)
class Account:
    """A user of this machine with an empty home at the start of the run."""

    name: str
    uid: int
    home: Path
    shell: str

    def set_password(self, password: str) -> None:
        """Let the user log in with a password too, whose proof costs next to nothing."""
        run("chpasswd", "--crypt-method", "MD5", stdin=f"{self.name}:{password}\n")

    def processes(self) -> list[psutil.Process]:
        return [p for p in psutil.process_iter() if real_uid(p) == self.uid and lives(p)]

    def command_lines(self) -> list[list[str]]:
        """Return the words of the account's processes."""
        return list(map(cmdline, self.processes()))

    def end_processes(self) -> None:
        end(self.processes())

    def remove_leases(self) -> None:
        """Delete the account's leases of GPUs, which would count as dead ones from now on."""
        for folder in Path(leases.PARENT).glob("jlr-gpus-*"):
            with suppress(OSError):
                if folder.lstat().st_uid == self.uid:
                    shutil.rmtree(folder)


def all_leases() -> list[Path]:
    return list(Path(leases.PARENT).glob("jlr-gpus-*/*"))


def real_uid(process: psutil.Process) -> int | None:
    """Return the user that a process runs as, unless it has just ended."""
    try:
        return int(process.uids().real)
    except psutil.Error:
        return None


def cmdline(process: psutil.Process) -> list[str]:
    """Return the words of a process, none if it has just ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def program_name(process: psutil.Process) -> str | None:
    """Return the name of a process's program, unless it has just ended."""
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return None


@contextmanager
def logging_in_with(account: Account, path: Path) -> Iterator[None]:
    """Give the account's login shells the programs of one folder only."""
    profile = account.home / ".bash_profile"
    profile.write_text(f"PATH={path}\n", encoding="utf-8")
    yield
    profile.unlink()


@contextmanager
def claimed_account(shell: str = "/bin/bash") -> Iterator[Account]:
    """Give an account (`jlrlab1` and so on, made when missing) that no other run uses."""
    for number in range(1, MOST_ACCOUNTS + 1):
        name = f"jlrlab{number}"
        with open_lock(root() / "accounts" / f"{name}.lock") as lock:
            if not try_lock(lock):
                continue
            account = prepare(name, shell)
            try:
                yield account
            finally:
                account.end_processes()
                account.remove_leases()
            return
    raise LabError(f"all {MOST_ACCOUNTS} accounts of the lab are in use")


def prepare(name: str, shell: str) -> Account:
    """Make the user if need be, end what a killed run left, and empty the home."""
    home = root() / "accounts" / name
    run("groupadd", "--force", "--system", GROUP)
    if name not in {user.pw_name for user in pwd.getpwall()}:
        run("useradd", "--no-create-home", "--gid", GROUP, "--home-dir", str(home), name)
    account = Account(name, pwd.getpwnam(name).pw_uid, home, shell)
    account.end_processes()
    # A password of `*` fits nothing; the `!` of a new user would lock the account for keys too.
    run("usermod", "--password", "*", "--shell", shell, "--home", str(home), name)
    shutil.rmtree(home, ignore_errors=True)
    run("install", "-d", "-m", "700", "-o", name, "-g", GROUP, str(home))
    run("sh", "-c", 'cp -r /etc/skel/. "$1" && chown -R "$2:" "$1"', "sh", str(home), name)
    return account
