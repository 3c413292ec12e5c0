"""A person at a terminal, and what can be seen of a login from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pexpect

from tests.lab.laptop import Laptop
from tests.lab.programs import Result, wait_until
from tests.lab.sshd import SSHServer
from tests.link.desk import is_link

PASSWORD = "correct horse"  # of an account that is made for the tests
SESSION = "one"  # runs on the host already; see the fixture `session`
START = ("--runtime", "none", "--no-browser")
PATIENCE = 60  # other work runs on the two cores
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """`jlr` in a terminal, as a person uses it.

    Attributes:
        screen: what was shown so far, as it came.
    """

    def __init__(self, spawned: pexpect.spawn[str]) -> None:
        self.screen = ""
        self._spawned = spawned

    @property
    def text(self) -> str:
        """What was shown so far, without colours and the spinner's movements."""
        return _SEQUENCE.sub("", self.screen).replace("\r\n", "\n")

    def sees(self, text: str) -> None:
        """Wait until a text is shown that was not seen before."""
        self._spawned.expect_exact(text)
        self.screen += f"{self._spawned.before}{self._spawned.after}"

    def answers(self, prompt: str, line: str) -> None:
        """Wait for a prompt and type a line."""
        self.sees(prompt)
        self._spawned.sendline(line)

    def interrupts(self) -> None:
        """Press Ctrl-C."""
        self._spawned.sendcontrol("c")

    def ends(self) -> int:
        """Wait until the command is over, which must ask nothing more; return its exit status."""
        self._spawned.expect_exact(pexpect.EOF)
        self.screen += str(self._spawned.before)
        self._spawned.wait()
        assert self._spawned.exitstatus is not None, f"a signal ended it: {self.text}"
        return int(self._spawned.exitstatus)


@contextmanager
def at_terminal(laptop: Laptop, *words: str) -> Iterator[Terminal]:
    """Run `jlr` with these words in a terminal."""
    with laptop.terminal("jlr", *words) as spawned:
        yield Terminal(spawned)


@contextmanager
def starting(laptop: Laptop, host: str, *words: str) -> Iterator[Terminal]:
    """Run `jlr start` in a terminal, for the session that runs on the host already."""
    with at_terminal(laptop, *words, "start", host, SESSION, *START) as terminal:
        yield terminal


def log_in(
    laptop: Laptop, host: str, *answers: tuple[str, str], options: tuple[str, ...] = ()
) -> str:
    """Start the session in a terminal, answer each prompt, and return what was shown."""
    with starting(laptop, host, *options) as terminal:
        for prompt, line in answers:
            terminal.answers(prompt, line)
        status = terminal.ends()
    assert status == 0, terminal.text
    return terminal.text


def without_terminal(laptop: Laptop, *words: str) -> Result:
    """Run `jlr` without a way to ask, beside other work."""
    return laptop.jlr(*words, timeout=PATIENCE)


def start(laptop: Laptop, host: str, *words: str) -> Result:
    """Run the same `jlr start` without a terminal."""
    return without_terminal(laptop, *words, "start", host, SESSION, *START)


def started(laptop: Laptop, host: str) -> Result:
    """Run it without a terminal, where it must succeed: nothing needs to be asked."""
    result = start(laptop, host)
    assert result.status == 0, result
    return result


def listed(laptop: Laptop) -> dict[str, Any]:
    """Return what `jlr list --json` says of the only session."""
    result = without_terminal(laptop, "list", "--json")
    assert result.status == 0, result
    (found,) = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def wait_for_state(laptop: Laptop, state: str) -> None:
    """Wait until `jlr list` tells the session's state."""
    wait_until(lambda: bool(listed(laptop)["state"] == state), f"the state `{state}`", PATIENCE)


def is_over(laptop: Laptop) -> None:
    """Wait until no link runs on the laptop any more."""
    wait_until(lambda: not any(map(is_link, laptop.processes())), "the end of the link", PATIENCE)


def disconnect(laptop: Laptop, host: str) -> None:
    """End the link, so that the next command has to log in."""
    assert laptop.jlr("disconnect", host).status == 0
    is_over(laptop)


def connections(server: SSHServer) -> int:
    """Return how many connections a server has seen."""
    return server.log_text().count("Connection from ")


def logins(server: SSHServer) -> int:
    """Return how many of them it let in."""
    return len(re.findall(r"Accepted \S+ for", server.log_text()))


def failures(server: SSHServer) -> int:
    """Return how many credentials it refused."""
    return len(re.findall(r"Failed (?:password|keyboard-interactive/pam) for", server.log_text()))
