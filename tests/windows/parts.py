"""A session on Windows, and what its commands said."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

from tests.lab.laptop import Laptop
from tests.lab.programs import SYSTEM_PATH, Result, attempt, wait_until
from tests.lab.windows import WindowsLaptop
from tests.sessions.parts import Session


def succeeded(result: Result) -> str:
    """Return what a command printed; it must have ended with 0."""
    assert result.status == 0, result
    return result.stdout


@dataclass(frozen=True)
class WindowsSession:
    """A session, with the object that `jlr start --json` printed of it."""

    laptop: WindowsLaptop
    report: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.report["name"])

    @property
    def url(self) -> str:
        return str(self.report["url"])

    def page(self) -> Session:
        """Return it as a browser has it: its port is this machine's."""
        return Session(cast("Laptop", self.laptop), self.report)

    def ssh(self, command: str, stdin: str, folder: Path) -> Result:
        """Run a command there by ssh, whose proxy command is jlr's on Windows.

        The keys are copied to a folder: Wine gives all users what an access list of Windows denies.
        """
        self.laptop.jlr("config", "ssh", "list")  # makes them
        for name in ("client_key", "known_hosts"):
            made = folder / name
            shutil.copy(self.laptop.profile / "AppData/Local/jlr/ssh" / name, made)
            made.chmod(0o600)
        proxy = shlex.join(self.laptop.command("proxy", f"{self.name}.jlr"))
        options = (f"ProxyCommand={proxy}", f"IdentityFile={folder}/client_key", "HostKeyAlias=jlr")
        known = (f"UserKnownHostsFile={folder}/known_hosts", "IdentitiesOnly=yes", "BatchMode=yes")
        words = [word for option in (*options, *known) for word in ("-o", option)]
        argv = ("ssh", "-F", "none", *words, "jlr", command)
        variables = {**self.laptop.wine.environment, "PATH": SYSTEM_PATH}
        return attempt(*argv, stdin=stdin, env=variables, timeout=120)

    def answers(self) -> bool:
        """Return whether its local port leads to Jupyter."""
        try:
            with urlopen(f"http://{self.page().base}api", timeout=5) as answer:
                return b"version" in answer.read()
        except OSError:
            return False

    def await_answer(self, timeout: float = 60) -> None:
        """Wait until its local port leads to Jupyter."""
        wait_until(self.answers, f"an answer at {self.url}", timeout=timeout)
