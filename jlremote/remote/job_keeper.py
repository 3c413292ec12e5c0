"""Keeps a job that is a process of its host, and does what is asked of that job later.

Its text lies in the job's folder as `program`. Its arguments are an action and the folder:

- `begin`: begin the job in a process session of its own, and print what identifies its process.
  stdin has the plan, a JSON object: `argv`, the `variables` that the command reads from its stdin,
  and the `files` of the folder by name. If `.waiter` is one of them, that program runs first, and
  becomes the command once it has GPUs.
- `signal NAME`, `stop yes|no` (by force, or SIGTERM first): what they say.

`process` has five words: process and start of the command, the boot, and process and start of the
keeper. `ways` has the commands that signal a job in a container, and that end all of its processes.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List

from jlremote.remote.orphans import Adopter, begin, facts

NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT
STAYS = 9  # the exit status of a sweep that leaves a process running
_ROOM = " " * 120  # longer than what is written over it
_LAST_BYTES = 4096  # less room than that at a job's end means that its output may be cut off


def _read(name: str) -> str:
    with open(name, encoding="ascii") as file:
        return file.read()


def _write(name: str, text: str, mode: str = "w") -> None:
    with open(name, mode, encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def _publish(name: str, text: str) -> None:
    """Write a file whose room was taken beforehand: the job may have filled the disk."""
    _write(f".{name}", text, "r+")
    os.rename(f".{name}", name)


def _boot() -> str:
    return _read("/proc/sys/kernel/random/boot_id").strip()


class Keeper:
    """The process that begins a job, waits for its end and records that."""

    def __init__(self, plan: Dict[str, Any], home: int) -> None:
        self.plan, self.home = plan, home  # the latter is where the command runs
        self.stdin = -1
        self.identity = -1  # a pipe for what identifies the job

    def prepare(self) -> None:
        """Write the folder's files; raise `OSError` where that cannot be done."""
        files = dict.fromkeys((".process", ".exit", "began"), _ROOM)
        files.update(dict.fromkeys(("stdout", "stderr"), ""), **self.plan["files"])
        files.update({".variables": self.plan["variables"]})
        for name, text in files.items():
            _write(name, text)
        self.stdin = os.open(".variables", os.O_RDONLY)
        os.unlink(".variables")

    def launch(self) -> int:
        """Keep the job in a process of its own; print what identifies it, and return a status."""
        reading, self.identity = os.pipe()
        if not os.fork():
            os.setsid()
            os.close(reading)
            self.keep()
            return 0
        os.close(self.identity)
        text = os.read(reading, len(_ROOM))
        os.write(1, text)
        os.write(2, b"" if text else b"it does not begin\n")
        return 0 if text else 1

    def keep(self) -> None:
        adopter = Adopter()
        if os.environ.get("SUDO_PROMPT", "").startswith("/proc/"):  # see `place.host.sudo`
            os.environ["SUDO_PROMPT"] = f"/proc/{os.getpid()}/fd/9"
        _write("began", f"{time.time():.0f}\n", "r+")
        for number, name in enumerate(("stdout", "stderr"), 1):
            os.dup2(os.open(name, os.O_WRONLY), number)
        os.dup2(self.stdin, 0)
        child = begin(self.command(), self.become_job)
        os.close(self.identity)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = adopter.wait(child)
        adopter.end_rest()
        full = "full"
        with contextlib.suppress(OSError):
            _write(".room", "0" * _LAST_BYTES)
            full = ""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(".room")
        with contextlib.suppress(FileNotFoundError):  # a container may be the job by now
            _publish("exit", f"{code} {time.time():.0f} {full}\n")

    def command(self) -> List[bytes]:
        command = [word.encode("utf-8", "surrogateescape") for word in self.plan["argv"]]
        folder = os.getcwdb()
        if ".waiter" in self.plan["files"]:
            python = os.fsencode(sys.executable)
            command = [python, b"-I", os.path.join(folder, b".waiter"), folder, *command]
        return command

    def become_job(self) -> None:
        os.setsid()
        own, keeper = os.getpid(), os.getppid()
        identity = [own, facts(own)[19], _boot(), keeper, facts(keeper)[19]]
        text = " ".join(map(str, identity)) + "\n"
        _publish("process", text)
        os.write(self.identity, text.encode())
        if self.plan["mark"]:
            os.environ["JLR_MARK"] = self.plan["mark"]
        os.fchdir(self.home)


class BegunJob:
    """The job of the present folder."""

    def __init__(self) -> None:
        ways = json.loads(_read("ways"))
        self.signal_argv: List[str] = ways["signal"]
        self.sweep_argv: List[str] = ways["sweep"]
        self.in_container: bool = ways["in_container"]
        pid, self.start, self.boot, keeper, self.began = _read("process").split()
        self.pid, self.keeper = int(pid), int(keeper)
        # The password of `sudo`, if the keeper was given one for the job.
        with contextlib.suppress(OSError):
            with open(f"/proc/{self.keeper}/environ", encoding="latin-1") as file:
                given = dict(item.partition("=")[::2] for item in file.read().split("\0"))
            if self.has_keeper() and given.get("SUDO_PROMPT", "").startswith("/proc/"):
                os.environ["SUDO_ASKPASS"] = given["SUDO_ASKPASS"]
                os.environ["SUDO_PROMPT"] = f"/proc/{self.keeper}/fd/9"

    def has_keeper(self) -> bool:
        return facts(self.keeper)[19:20] == [self.began] and self.boot == _boot()

    def is_alive(self) -> bool:
        """Return whether it runs, or its keeper has yet to record the end."""
        if os.path.exists("exit") or self.boot != _boot():
            return False
        return facts(self.pid)[19:20] == [self.start] or self.has_keeper()

    def ended(self, seconds: float) -> bool:
        """Wait for its end, and return whether it came."""
        last = time.monotonic() + seconds
        while self.is_alive() and time.monotonic() < last:
            time.sleep(0.1)
        return not self.is_alive()

    def signal(self, name: str) -> None:
        """Signal the job's process group, which may be in a container."""
        if not self.is_alive():
            return
        if name == "KILL" and self.in_container and not self.signal_argv:
            self.sweep("KILL")  # the client would die without a word to the other side
        if self.signal_argv and not os.path.exists("waiting"):
            subprocess.call([*self.signal_argv, name], stdin=subprocess.DEVNULL)
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, getattr(signal, f"SIG{name}"))

    def sweep(self, name: str, known: str = "") -> bool:
        """End processes that left the group, and the `known` ones; return whether none stays."""
        argv = [*self.sweep_argv, f"{name} {known}"] if self.sweep_argv else ["true"]
        return subprocess.call(argv, stdin=subprocess.DEVNULL) != STAYS

    def family(self) -> str:
        """Return the processes that can only be found through their living parents."""
        if not self.sweep_argv or not self.is_alive():
            return ""
        parent = f" {self.keeper}" if self.has_keeper() and not self.in_container else ""
        listed = subprocess.run(
            [*self.sweep_argv, f"LIST{parent}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return " ".join(listed.stdout.decode("ascii", "replace").split())

    def stop(self, force: bool) -> bool:
        """End all of the job's processes; return whether it could be done."""
        known = self.family()
        if not force and self.is_alive():
            if self.has_keeper():
                os.kill(self.keeper, signal.SIGTERM)
            self.signal("TERM")
            # A command that stays is swept first, while what adopts its orphans lives.
            if not self.ended(10):
                if not self.sweep("TERM", known):
                    return False
                known = self.family() or known
                force = True
        if force:
            self.signal("KILL")
        has_ended = self.ended(10)
        return self.sweep("KILL" if force else "TERM", known) and has_ended


def main(arguments: List[str]) -> int:
    """Do an action, and return the exit status."""
    action, folder, *rest = arguments
    home = os.open(".", os.O_PATH)
    os.chdir(folder)
    if action == "begin":
        keeper = Keeper(json.load(sys.stdin), home)
        try:
            keeper.prepare()
        except OSError as failure:
            os.write(2, os.getcwdb() + f": {failure.strerror}\n".encode())
            return NO_FOLDER
        return keeper.launch()
    if action == "stop":
        return 0 if BegunJob().stop(rest[0] == "yes") else 1
    BegunJob().signal(rest[0])
    return 0
