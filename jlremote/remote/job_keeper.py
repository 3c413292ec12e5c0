"""Keeps a job that is a process of its host, and does what is asked of that job later.

Its text lies in the job's folder as `program`. Its arguments are an action and the folder:

- `begin`: begin the job in a process session of its own, and print what identifies its process.
  stdin has the plan, a JSON object: `argv`, and the `files` of the folder by name; with
  `interactive` the command gets stdin from a named pipe, with `terminal` it has a terminal.
  `variables` come before that, in the terminal where it prints `mark`. `waiter` precedes
  the folder and the command, if it is to wait for GPUs first.
- `stdin COMMAND...`: become the command, once another program writes to the pipe.
- `signal NAME`, `stop yes|no` (SIGTERM, or by force): what they say.
- `attach whole|missed KEYS`: connect this terminal to the job's, until the keys, in hexadecimal,
  are typed; once the job ends wait until its end is recorded.

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
from typing import Any, Callable, Dict, List

from jlremote.remote import job_terminal
from jlremote.remote.orphans import Adopter, become, begin, facts

NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT
STAYS = 9  # the exit status of a sweep that leaves a process running
MARK = "JLR_MARK"
_ROOM = " " * 120  # longer than what is written over it
_LAST_BYTES = 4096  # less room than that at a job's end means that its output may be cut off
_BOOT = "/proc/sys/kernel/random/boot_id"


class JobFolder:
    """A job's folder."""

    def __init__(self, path: str) -> None:
        self.path = path

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def read(self, name: str) -> str:
        with open(self.file(name), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def write(self, name: str, text: str) -> None:
        with open(self.file(name), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)

    def write_over(self, name: str, text: str) -> None:
        """Write where room was taken beforehand: the job fills the disk, perhaps."""
        with open(self.file(name), "r+") as file:
            file.write(text)

    def publish(self, name: str, text: str) -> None:
        """Write such a file as a whole."""
        self.write_over(f".{name}", text)
        os.rename(self.file(f".{name}"), self.file(name))

    def is_full(self) -> bool:
        try:
            self.write(".room", "0" * _LAST_BYTES)
        except OSError:
            return True
        finally:
            with contextlib.suppress(OSError):
                os.unlink(self.file(".room"))
        return False


class Keeper:
    """The process that begins the job, waits for its end and records that."""

    def __init__(self, folder: JobFolder, plan: Dict[str, Any]) -> None:
        self.folder, self.plan = folder, plan
        self.variables = plan["variables"].encode("utf-8", "surrogateescape")
        self.stdin = os.open(os.devnull, os.O_RDONLY)

    def prepare(self) -> None:
        """Write the folder's files; raise `OSError` where that cannot be done."""
        for name, text in self.plan["files"].items():
            self.folder.write(name, text)
        for name in (".process", ".exit", "began"):
            self.folder.write(name, _ROOM)
        for name in ("stdout", "stderr"):
            self.folder.write(name, "")
        if self.variables and not self.plan["terminal"]:
            self.folder.write(".variables", self.plan["variables"])
        if self.plan["interactive"]:
            os.mkfifo(self.folder.file("stdin"), 0o600)
        elif self.variables and not self.plan["terminal"]:
            self.stdin = os.open(self.folder.file(".variables"), os.O_RDONLY)
            os.unlink(self.folder.file(".variables"))

    def launch(self) -> int:
        """Keep the job in a process of its own; print what identifies it, and return a status."""
        reading, writing = os.pipe()
        if not os.fork():
            os.setsid()
            os.close(reading)
            self.keep(writing)
            return 0
        os.close(writing)
        identity = os.read(reading, len(_ROOM))
        os.write(1, identity)
        os.write(2, b"" if identity else b"it does not begin\n")
        return 0 if identity else 1

    def keep(self, told: int) -> None:
        """Run the command to its end; write to the pipe `told` what identifies it."""
        adopter = Adopter()
        if os.environ.get("SUDO_PROMPT", "").startswith("/proc/"):  # see `host.sudo`
            os.environ["SUDO_PROMPT"] = f"/proc/{os.getpid()}/fd/9"
        self.folder.write_over("began", f"{time.time():.0f}\n")
        for number, name in enumerate(("stdout", "stderr"), 1):
            os.dup2(os.open(self.folder.file(name), os.O_WRONLY), number)
        os.dup2(self.stdin, 0)
        os.close(self.stdin)
        code = self.run(adopter, told)
        adopter.end_rest()
        full = "full" if self.folder.is_full() else ""
        with contextlib.suppress(FileNotFoundError):  # a container may be the job by now
            self.folder.publish("exit", f"{code} {time.time():.0f} {full}\n")

    def run(self, adopter: Adopter, told: int) -> int:
        """Run the command, and return its exit code."""
        command = self.command()
        if self.plan["terminal"]:
            mark = self.plan["mark"].encode()
            terminal = job_terminal.JobTerminal(self.folder.path, mark, self.variables)
            terminal.begin(command, lambda: self.become_job(told))
            os.close(told)
            return terminal.to_the_end()
        child = begin(command, lambda: self.become_job(told))
        os.close(told)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        return adopter.wait(child)

    def command(self) -> List[bytes]:
        command, folder = _encoded(self.plan["argv"]), os.fsencode(self.folder.path)
        if self.plan["interactive"]:
            program = os.fsencode(self.folder.file("program"))
            command = [os.fsencode(sys.executable), b"-IS", program, b"stdin", folder, *command]
        if self.plan["waiter"]:
            command = [*_encoded(self.plan["waiter"]), folder, *command]
        return command

    def become_job(self, told: int) -> None:
        """Record this process as the job's."""
        if not self.plan["terminal"]:
            os.setsid()
        if self.plan["mark"]:
            os.environ[MARK] = self.plan["mark"]
        own, keeper = os.getpid(), os.getppid()
        identity = [own, facts(own)[19], _boot(), keeper, facts(keeper)[19]]
        text = " ".join(map(str, identity)) + "\n"
        self.folder.publish("process", text)
        os.write(told, text.encode())


class BegunJob:
    """A job that has begun."""

    def __init__(self, folder: JobFolder) -> None:
        self.folder = folder
        ways = json.loads(folder.read("ways"))
        self.signal_argv: List[str] = ways["signal"]
        self.sweep_argv: List[str] = ways["sweep"]
        self.in_container: bool = ways["in_container"]
        pid, self.start, self.boot, keeper, self.began = folder.read("process").split()
        self.pid, self.keeper = int(pid), int(keeper)

    def has_keeper(self) -> bool:
        return facts(self.keeper)[19:20] == [self.began] and self.boot == _boot()

    def is_alive(self) -> bool:
        """Whether it runs; after its command its keeper still has to record the end."""
        if os.path.exists(self.folder.file("exit")) or self.boot != _boot():
            return False
        return facts(self.pid)[19:20] == [self.start] or self.has_keeper()

    def ended(self, seconds: float) -> bool:
        """Wait for its end, and return whether it came."""
        last = time.monotonic() + seconds
        while self.is_alive():
            if time.monotonic() > last:
                return False
            time.sleep(0.1)
        return True

    def signal(self, name: str) -> None:
        """Signal the job's process group, which is in a container perhaps."""
        if name == "KILL" and self.in_container and not self.signal_argv:
            # The client would die without a word to the other side.
            self.sweep("KILL")
        begins = any(os.path.exists(self.folder.file(each)) for each in ("stdin", "waiting"))
        if self.signal_argv and not begins:
            subprocess.call([*self.signal_argv, name], stdin=subprocess.DEVNULL)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, getattr(signal, f"SIG{name}"))

    def sweep(self, name: str, known: str = "") -> bool:
        """End what left the group, and what is `known`; return whether nothing stays."""
        if not self.sweep_argv:
            return True
        argv = [*self.sweep_argv, f"{name} {known}"]
        return subprocess.call(argv, stdin=subprocess.DEVNULL) != STAYS

    def family(self) -> str:
        """Return what is known by its parents only, as long as those live."""
        if not self.sweep_argv or not self.is_alive():
            return ""
        parent = f" {self.keeper}" if self.has_keeper() and not self.in_container else ""
        argv = [*self.sweep_argv, f"LIST{parent}"]
        listed = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return " ".join(listed.stdout.decode("ascii", "replace").split())

    def kill(self, known: str = "") -> str:
        """Kill the job; return what was known of it just before."""
        if self.is_alive():
            known = self.family()
            self.signal("KILL")
        return known

    def stop(self, force: bool) -> bool:
        """End all of the job's processes; return whether it could be done."""
        if force:
            known = self.kill()
            self.ended(5)
            return self.sweep("KILL", known)
        known = self.family()
        if self.is_alive():
            if self.has_keeper():
                os.kill(self.keeper, signal.SIGTERM)
            self.signal("TERM")
            # A command that stays is swept first, while what adopts its orphans lives.
            if not self.ended(10):
                if not self.sweep("TERM", known):
                    return False
                known = self.kill(known)
                if not self.ended(5):
                    return False
        return self.sweep("TERM", known)


def _encoded(words: List[str]) -> List[bytes]:
    return [word.encode("utf-8", "surrogateescape") for word in words]


def _boot() -> str:
    with open(_BOOT) as file:
        return file.read().strip()


def _begin(folder: JobFolder) -> int:
    keeper = Keeper(folder, json.load(sys.stdin))
    try:
        keeper.prepare()
    except OSError as failure:
        os.write(2, f"{folder.path}: {failure.strerror}\n".encode("utf-8", "surrogateescape"))
        return NO_FOLDER
    return keeper.launch()


def _stdin(folder: JobFolder, *command: str) -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    pipe = os.open(folder.file("stdin"), os.O_RDONLY)
    os.unlink(folder.file("stdin"))
    os.dup2(pipe, 0)
    become([os.fsencode(word) for word in command])
    return 0


def _signal(folder: JobFolder, name: str) -> int:
    job = BegunJob(folder)
    if job.is_alive():
        job.signal(name)
    return 0


def _stop(folder: JobFolder, force: str) -> int:
    return 0 if BegunJob(folder).stop(force == "yes") else 1


def _attach(folder: JobFolder, first: str, keys: str) -> int:
    detach = job_terminal.DetachFilter(bytes.fromhex(keys))
    if job_terminal.attach(folder.path, first == "whole", detach):
        BegunJob(folder).ended(10)
    return 0


_ACTIONS: Dict[str, Callable[..., int]] = {
    "begin": _begin,
    "stdin": _stdin,
    "signal": _signal,
    "stop": _stop,
    "attach": _attach,
}


def main(arguments: List[str]) -> int:
    """Do an action, and return the exit status."""
    action, path, *rest = arguments
    return _ACTIONS[action](JobFolder(path), *rest)
