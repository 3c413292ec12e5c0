"""A person who tries `jlr demo` on a machine of theirs, where nothing is set up."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.lab.laptop import PROGRAMS, Laptop, description
from tests.lab.programs import wait_until
from tests.sessions.parts import Session

HIDDEN = ("docker", "podman", "nerdctl", "ssh", "sshd", "scp", "sftp", "python", "jupyter")
END_SECONDS = 40


def bare_path(folder: Path) -> str:
    """Return a PATH with the system's programs but without engines, ssh and Python."""
    folder.mkdir()
    for place in ("/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            link = folder / program.name
            if not program.name.startswith(HIDDEN) and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


@dataclass
class Demo:
    laptop: Laptop
    process: subprocess.Popen[str]

    def session(self) -> Session:
        """Return the session, once its URL was printed."""
        assert self.process.stdout is not None
        said = ""
        while not said.rstrip().endswith("}"):
            line = self.process.stdout.readline()
            assert line, f"the demo ended with {self.process.wait()}: {said}"
            said += line
        return Session(self.laptop, json.loads(said[said.index("{") :]))

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End it as a crash does: it cleans up nothing. Twice is fine."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def end(self) -> tuple[int, str]:
        assert self.process.stdout is not None
        status = self.process.wait(END_SECONDS)
        return status, self.process.stdout.read()


def start_demo(laptop: Laptop, *words: str, before: str = "") -> Demo:
    """Run `jlr demo`, which `session` waits for; a shell does `before` first."""
    jlr = (str(PROGRAMS / "jlr"), "demo", "--no-browser", "--json", *words)
    process = subprocess.Popen(
        ("/bin/sh", "-c", f'{before}\nexec "$@"', "sh", *jlr),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=laptop.environment,
        cwd=laptop.folder / "home",
        start_new_session=True,
    )
    return Demo(laptop, process)


def traces(laptop: Laptop) -> list[str]:
    """Return what a demo has left on a machine: processes, and files that should be gone."""
    processes = [description(process) for process in laptop.processes()]
    runtime, state = laptop.folder / "run" / "jlr", laptop.folder / "state" / "jlr"
    folders = (runtime / "demo", *state.glob("servers/*/*"))
    files = (*runtime.glob("open-*.html"), *state.glob("sessions/*"), *state.glob("stops/*.json"))
    return processes + [str(path) for path in (*folders, *files) if path.exists()]


def wait_for_no_trace(laptop: Laptop) -> None:
    """Wait for the link's process to be gone too, which is asked to go and not waited for."""
    wait_until(lambda: not traces(laptop), "the removal of all traces")


def processes_of(laptop: Laptop, word: str) -> list[psutil.Process]:
    """Return the laptop's processes with `word` among their arguments."""
    found = []
    for process in laptop.processes():
        with suppress(psutil.NoSuchProcess):
            if any(word in part for part in process.cmdline()):
                found.append(process)
    return found


def ignores(process: psutil.Process, number: int) -> bool:
    status = Path(f"/proc/{process.pid}/status").read_text("ascii")
    mask = next(line for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(mask.split()[1], 16) & 1 << (number - 1))
