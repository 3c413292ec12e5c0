"""Jobs as a person begins and watches them."""

from __future__ import annotations

import json
import secrets
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any

import psutil

from jlremote.place.host.shell_text import command_line
from tests.cli.terminal import Terminal
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until

SECONDS = 60
Whole = subprocess.CompletedProcess[bytes]


class Watching:
    """A `jlr` that watches a job; its stdout is read from the beginning to the end."""

    def __init__(self, laptop: Laptop, words: tuple[str, ...], stderr: IO[bytes]) -> None:
        self._stderr = stderr
        self.process = laptop.popen(*words, stdout=subprocess.PIPE, stderr=stderr)

    def line(self) -> str:
        """Return the next line of its stdout."""
        assert self.process.stdout is not None
        return str(self.process.stdout.readline(), "utf-8")

    def end(self) -> tuple[int, str, str]:
        """Return its exit code, the rest of its stdout, and its stderr."""
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        status = self.process.wait(SECONDS)
        self._stderr.seek(0)
        return status, rest.decode(), self._stderr.read().decode()

    def leave(self) -> None:
        """End it, if it has not ended."""
        self.process.kill()
        self.process.communicate()


@dataclass(frozen=True)
class Jobs:
    """Jobs of a laptop, all in one place."""

    laptop: Laptop
    where: tuple[str, ...]  # the options that say so
    containers: ContainerFactory  # gives names, which are those of containers too

    def name(self) -> str:
        """Return a name that no job has."""
        return self.containers.name()

    def run(self, name: str, *command: str, options: tuple[str, ...] = ()) -> Whole:
        """Run a job to its end."""
        asked = (*self.where, "--name", name, *options)
        return whole(self.laptop, "run", "lab", *asked, "--", *command)

    @contextmanager
    def watched(self, name: str, script: str) -> Iterator[Watching]:
        """Begin a job that runs a script, and give the `jlr` that watches it."""
        argv = ("run", "lab", *self.where, "--name", name, "--", "sh", "-c", script)
        with TemporaryFile() as stderr:
            watching = Watching(self.laptop, argv, stderr)
            try:
                yield watching
            finally:
                watching.leave()
                self.laptop.jlr("rm", f"lab/{name}", "--force", "--yes")

    def begin(self, name: str, script: str) -> None:
        """Begin a job and leave it alone."""
        argv = ("--name", name, "--detach", "--", "sh", "-c", script)
        begun = self.laptop.jlr("run", "lab", *self.where, *argv)
        assert (begun.status, begun.stdout) == (0, f"{name}\n"), begun

    def state(self, name: str) -> dict[str, Any]:
        """Return what `jlr job list` says of a job, nothing if it does not list it."""
        listed = self.laptop.jlr("job", "list", "lab", "--json")
        assert listed.status == 0, listed
        found = [job for job in json.loads(listed.stdout) if job["name"] == name]
        return found[0] if found else {}

    def wait_over(self, name: str) -> int:
        """Return the exit code of a job once it has ended."""
        wait_until(lambda: self.state(name)["state"] == "ended", f"the end of `{name}`")
        return int(self.state(name)["exit_code"])


class Leavers:
    """Processes of a job that do not end with it by themselves.

    Attributes:
        script: begins them, prints a line for each, and runs on until SIGTERM, or SIGKILL.
        count: how many there are.
    """

    def __init__(self, *, ignore: bool = False) -> None:
        self._word = f"leaver-{secrets.token_hex(6)}"
        endless = f"echo begun; while :; do sleep 0.1; done; : {self._word}"
        plain = command_line(("sh", "-c", f"trap : TERM; {endless}"))
        # Without the job's variables, as programs are that write their title over them.
        nameless = f"env -i setsid {plain}"
        again = shlex.quote(f"{nameless} & exit")
        returning = command_line(("sh", "-c", f"trap {again} TERM; {endless}"))
        # The last three are orphans: their parents end at once.
        begun = [f"{plain} &", f"setsid {plain} &", f"{nameless} &", f"{returning} &"]
        begun += f"(setsid {plain} &)", f"({nameless} &)", f"(setsid {returning} &)"
        self.count = len(begun)
        goes_on = "trap : TERM; while :; do sleep 0.1; done" if ignore else "sleep 641; echo no"
        self.script = "\n".join((*begun, goes_on))

    def left(self) -> list[list[str]]:
        """Return the command lines of those that run, on this machine or in a container of it."""
        found = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
        return [words for words in found if self._word in " ".join(words)]


@contextmanager
def at_terminal(laptop: Laptop, *words: str) -> Iterator[Terminal]:
    """Run `jlr` in a terminal."""
    terminal = Terminal(words, laptop=laptop)
    try:
        yield terminal
    finally:
        terminal.close()


def whole(laptop: Laptop, *words: str) -> Whole:
    """Run `jlr` to its end and return its output as it is."""
    return Whole(words, *laptop.raw(*words))
