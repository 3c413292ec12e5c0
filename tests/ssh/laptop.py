"""The laptop of these tests: one ssh config, and two ways in, the real `ssh` and ours."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from jlremote.errors import JlrError, NeedsAuthentication
from jlremote.questions import Question
from jlremote.ssh.config.destination import resolve
from jlremote.ssh.connect import connect
from jlremote.ssh.connection import Connection
from jlremote.ssh.login.credentials import Keychain, Remember
from tests.lab.accounts import Account
from tests.lab.programs import PATIENCE, run, write_program
from tests.lab.sshd import SSHServer, make_key

HOST = "lab"
_ASKPASS = """#!/bin/sh
# Answers with the next line of a file, and fails when there is none left.
IFS= read -r answer < {answers} || exit 1
sed -i 1d {answers}
printf '%s\\n' "$answer"
"""


@dataclass
class Person:
    """Answers questions from a list, and turns away when it is empty.

    Attributes:
        answers: what comes next.
        asked: every question so far.
    """

    answers: list[str] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)

    def ask(self, question: Question) -> str:
        self.asked.append(question)
        if not self.answers:
            raise NeedsAuthentication("no person to ask")
        return self.answers.pop(0)

    def kinds(self) -> list[str]:
        return [question.kind for question in self.asked]


class Laptop:
    """A folder with keys, known_hosts and config, out of reach of the real home's settings."""

    def __init__(self, folder: Path, key: Path | None = None) -> None:
        self.folder = folder
        self.config = folder / "config"
        self.known_hosts = folder / "known_hosts"
        self.key = key or make_key(folder / "key")
        self.environment: dict[str, str] = {}

    def authorize(self, *keys: Path) -> Path:
        """Return a new file of the public halves of `keys`, which sshd lets in."""
        descriptor, name = tempfile.mkstemp(prefix="authorized-", dir=self.folder)
        os.close(descriptor)
        path = Path(name)
        path.write_text(
            "".join(key.with_name(f"{key.name}.pub").read_text() for key in keys or (self.key,))
        )
        path.chmod(0o644)
        return path

    def convert(self, key: Path, form: str, passphrase: str) -> None:
        """Rewrite a private key in another format."""
        change = ("-p", "-m", form, "-P", passphrase, "-N", passphrase)
        run("ssh-keygen", "-q", *change, "-f", str(key))

    def knows(self, server: SSHServer, name: str | None = None) -> None:
        """Add a server's keys to known_hosts."""
        with self.known_hosts.open("a") as file:
            file.write(server.known_hosts(name or f"[127.0.0.1]:{server.port}"))

    def configure(
        self, server: SSHServer, account: Account, *settings: str, identity: Path | None = None
    ) -> None:
        """Write the config for `HOST`; `settings` come first, and so they win."""
        lines = [
            f"Host {HOST}",
            *settings,
            "HostName 127.0.0.1",
            f"Port {server.port}",
            f"User {account.name}",
            f"IdentityFile {identity or self.key}",
            f"UserKnownHostsFile {self.known_hosts}",
            f"GlobalKnownHostsFile {self.folder / 'global_known_hosts'}",
            "ConnectTimeout 30",  # under load the longest key exchange takes over ten
        ]
        self.config.write_text("\n".join(lines) + "\n")

    @contextmanager
    def connected(
        self,
        *answers: str,
        host: str = HOST,
        person: Person | None = None,
        keychain: Keychain | None = None,
        remember: Remember = "no",
        folder: Path = Path(),
    ) -> Iterator[Connection]:
        """Connect our way, and close afterwards."""
        connection = connect(
            resolve(host, self.config, folder),
            person or Person(list(answers)),
            agent_socket=self.environment.get("SSH_AUTH_SOCK"),
            secrets=keychain,
            remember=remember,
        )
        try:
            yield connection
        finally:
            connection.close()

    def ours(self, *answers: str, host: str = HOST, folder: Path = Path()) -> JlrError | None:
        """Return why our way did not get in, `None` where it did and ran a command."""
        try:
            with self.connected(*answers, host=host, folder=folder) as connection:
                assert (
                    connection.execute(b"exit 7", lambda _stream, _data: None, timeout=PATIENCE)
                    == 7
                )
        except JlrError as error:
            return error
        return None

    def theirs(self, *answers: str, host: str = HOST) -> str | None:
        """Return what the real `ssh` said when it did not get in, `None` where it did."""
        done = self.ssh("exit 7", answers, host=host)
        return None if done.returncode == 7 else done.stderr or f"status {done.returncode}"

    def get_in(self) -> bool:
        """Return whether both ways get in; one that does while the other does not is a failure."""
        theirs, ours = self.theirs(), self.ours()
        assert (theirs is None) == (ours is None), f"ssh: {theirs}\njlr: {ours!r}"
        return ours is None

    def ssh(
        self, command: str, answers: Sequence[str] = (), host: str = HOST
    ) -> subprocess.CompletedProcess[str]:
        """Run the real `ssh`."""
        return subprocess.run(
            ("ssh", "-F", str(self.config), host, command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            env=self._environment(answers),
            start_new_session=True,  # no terminal to ask at
            check=False,
        )

    def _environment(self, answers: Sequence[str]) -> Mapping[str, str]:
        waiting = self.folder / "answers"
        waiting.write_text("".join(f"{answer}\n" for answer in answers))
        askpass = self.folder / "askpass"
        write_program(askpass, _ASKPASS.format(answers=shlex.quote(str(waiting))))
        asking = {"SSH_ASKPASS": str(askpass), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
        kept = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
        return kept | asking | self.environment


def logins(server: SSHServer) -> list[str]:
    """Return the log lines in which a server saw an attempt to log in."""
    telling = ("Accepted", "Failed", "Postponed", "Invalid user", "authenticating user")
    return [
        line for line in server.log_text().splitlines() if any(word in line for word in telling)
    ]
