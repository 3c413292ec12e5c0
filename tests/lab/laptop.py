"""A laptop: a home folder with its own ssh and jlr configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pexpect
import psutil

from tests.lab.accounts import Account, cmdline
from tests.lab.fork_server import can_fork, fork_server
from tests.lab.forked import ForkedCommand, ForkedTerminal
from tests.lab.programs import PATIENCE, Result, attempt, end, wait_ended, write_program
from tests.lab.sshd import SSHServer, make_key

PROGRAMS = Path(sys.executable).parent
FOLDERS = {
    "HOME": "home",
    "XDG_CONFIG_HOME": "config",
    "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "XDG_RUNTIME_DIR": "run",
}


class Laptop:
    """A user's machine as programs see it: folders, ssh configuration, browser.

    Its path is short, for unix sockets end at 107 bytes. `BROWSER` is a program that only notes
    what it was asked to open.

    Attributes:
        stubborn: the processes that had to be killed at its end.
    """

    def __init__(self) -> None:
        self.stubborn: list[str] = []
        self.folder = Path(tempfile.mkdtemp(prefix="jlr-", dir="/tmp"))
        for name in FOLDERS.values():
            (self.folder / name).mkdir(mode=0o700)
        self.ssh_config = self.folder / "ssh_config"
        self.ssh_config.touch()
        self.known_hosts = self.folder / "known_hosts"
        self.known_hosts.touch()
        noting = f"#!/bin/sh\nprintf '%s\\n' \"$1\" >> {self.folder}/opened\n"
        write_program(self.folder / "browser", noting)
        self.environment = {
            **{name: str(self.folder / folder) for name, folder in FOLDERS.items()},
            "PATH": f"{PROGRAMS}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "BROWSER": str(self.folder / "browser"),
            "JLR_SSH_CONFIG": str(self.ssh_config),
        }

    def opened(self) -> list[str]:
        """Return what the browser was asked to open, oldest first."""
        noted = self.folder / "opened"
        return noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []

    def add_host(
        self,
        alias: str,
        server: SSHServer,
        account: Account,
        *,
        key: Path | None = None,
        known: bool = True,
        address: str = "127.0.0.1",
        port: int | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Write a `Host` block to the ssh configuration.

        Args:
            key: the private key to offer; none if left out.
            known: whether the server's keys are written to `known_hosts`.
            port: where it is reached, if not at its own port: that of a `Line` to it.
        """
        port = port or server.port
        identity = f"IdentityFile {key}" if key else "PubkeyAuthentication no"
        place = (f"HostName {address}", f"Port {port}", f"User {account.name}", identity)
        names = server.known_hosts(f"[{address}]:{port}") if known else ""
        self.write_host(alias, names, *place, "GlobalKnownHostsFile /dev/null", *options)

    def write_host(self, alias: str, known: str, *lines: str) -> None:
        """Write a `Host` block of these lines, and what is known of its keys."""
        own = ("IdentitiesOnly yes", f"UserKnownHostsFile {self.known_hosts}")
        block = "".join(f"    {line}\n" for line in (*own, *lines))
        with self.ssh_config.open("a", encoding="utf-8") as config:
            config.write(f"Host {alias}\n{block}\n")
        with self.known_hosts.open("a", encoding="utf-8") as known_hosts:
            known_hosts.write(known)

    @property
    def settings(self) -> Path:
        """Its `config.toml`, which a new laptop does not have."""
        return Path(self.environment["XDG_CONFIG_HOME"]) / "jlr" / "config.toml"

    def settle(self, text: str) -> Path:
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_text(text, encoding="utf-8")
        return self.settings

    def make_key(self, name: str = "id", passphrase: str = "") -> Path:
        """Make another key pair on this laptop and return the private one's path."""
        return make_key(self.folder / name, passphrase=passphrase)

    def ssh(self, alias: str, *words: str, stdin: str = "") -> Result:
        """Run OpenSSH's client, to compare with or to look at the host by another way."""
        argv = ("ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", alias, *words)
        return self.run(*argv, timeout=30, stdin=stdin)

    def jlr(self, *words: str, timeout: float = 2 * PATIENCE, stdin: str | None = None) -> Result:
        """Run `jlr` to its end, without a terminal."""
        argv, given = (str(PROGRAMS / "jlr"), *words), stdin or ""
        if not can_fork(argv, self.environment, given):
            return self.run(*argv, timeout=timeout, stdin=stdin)
        status, *output = self.raw(*words, timeout=timeout, stdin=given.encode())
        # As `subprocess` decodes and translates newlines.
        texts = (TextIOWrapper(BytesIO(each), "utf-8", "replace").read() for each in output)
        return Result(argv, status, *texts)

    def raw(
        self, *words: str, timeout: float = 2 * PATIENCE, stdin: bytes = b""
    ) -> tuple[int, bytes, bytes]:
        """Run `jlr` to its end, without a terminal; return its exit code, stdout and stderr."""
        where = (self.environment, self.folder / "home")
        argv = (str(PROGRAMS / "jlr"), *words)
        return fork_server().call(argv, *where, timeout=timeout, stdin=stdin)

    def run(self, *argv: str, timeout: float = 2 * PATIENCE, stdin: str | None = None) -> Result:
        """Run any program with this laptop's environment."""
        return attempt(
            *argv, timeout=timeout, env=self.environment, stdin=stdin, cwd=self.folder / "home"
        )

    def completions(self, line: str) -> list[str]:
        asked = (f"COMP_LINE={line}", "COMP_WORDBREAKS=", "_JLR_COMPLETE=bash_complete")
        done = self.run("env", *asked, str(PROGRAMS / "jlr"))
        assert done.stderr == "", done
        return [one.partition(",")[2] for one in done.stdout.splitlines() if one]

    def spawn(self, *words: str, forked: bool = True) -> subprocess.Popen[str]:
        """Run `jlr` in a session of its own and return at once; its output is one pipe.

        Where it may be stopped before it has loaded, it must not be forked.
        """
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        home = self.folder / "home"
        process: subprocess.Popen[str] = self.popen(*words, forked=forked, cwd=home, **streams)
        return process

    def popen(self, *words: str, forked: bool = True, **options: Any) -> Any:
        """Run `jlr` in a session of its own; `options` are streams for `subprocess.Popen`."""
        argv = (str(PROGRAMS / "jlr"), *words)
        options = {"stdin": subprocess.DEVNULL, "env": self.environment, **options}
        if forked and self._may_fork(argv):
            return ForkedCommand(argv, **options)
        return subprocess.Popen(argv, start_new_session=True, **options)

    @contextmanager
    def terminal(self, *argv: str, timeout: float = PATIENCE) -> Iterator[pexpect.spawn[str]]:
        """Run a program in a terminal, where it may ask; `argv` may begin with `jlr`."""
        environment = self.environment | {"TERM": "xterm-256color"}
        spawn = ForkedTerminal if argv[0] == "jlr" and self._may_fork(argv) else pexpect.spawn
        spawned = spawn(
            argv[0],
            list(argv[1:]),
            encoding="utf-8",
            timeout=timeout,
            env=environment,
            cwd=str(self.folder / "home"),
            dimensions=(40, 120),
        )
        try:
            yield spawned
        finally:
            spawned.close(force=True)

    def link_log(self) -> str:
        logs = (self.folder / "state" / "jlr" / "log").glob("link-*.log")
        return max(logs, key=lambda log: log.stat().st_mtime).read_text("utf-8")

    def _may_fork(self, argv: Sequence[str]) -> bool:
        """Return whether a fork does as well as a start: the demo is another program."""
        other = "demo" in argv[1:2]
        return not other and can_fork(argv, self.environment, "") and fork_server().can_show

    def processes(self) -> list[psutil.Process]:
        """Return the processes with this laptop's environment: links, forgotten commands."""
        own = f"XDG_RUNTIME_DIR={self.environment['XDG_RUNTIME_DIR']}\0".encode()
        found = []
        # Each test asks twice; `psutil.process_iter` would take twice the time.
        for pid in psutil.pids():
            with suppress(OSError, psutil.Error):
                if own in Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(psutil.Process(pid))
        return found

    def shut_down(self) -> list[str]:
        """End every process of this laptop and return those that did not go when asked."""
        found = self.processes()
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        stubborn = wait_ended(found, 10)
        words = list(map(description, stubborn))
        end(stubborn)
        return words

    def remove(self) -> None:
        """Delete the laptop's folder; a mount below it would be left alone."""
        if not any(os.path.ismount(path) for path in self.folder.rglob("*")):
            shutil.rmtree(self.folder, ignore_errors=True)


def description(process: psutil.Process) -> str:
    """Return a process's pid and arguments for a message."""
    return f"{process.pid}: {' '.join(cmdline(process)) or 'ended just now'}"
