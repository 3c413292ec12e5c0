"""Servers behind a forward: light ones that look like a session's Jupyter, and a squatter."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil

from jlremote.jupyter import scripts
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.processes import Bare
from jlremote.place.runtimes.runtime import Runtime
from tests.lab.accounts import Account
from tests.lab.containers import Container
from tests.lab.programs import lives
from tests.link.fakes import until

PROGRAM = (Path(__file__).parent / "stand_in.py").read_text(encoding="utf-8")


def beginning(runtime: Runtime, name: str, bind: str, port: int) -> str:
    """Return shell text that becomes the stand-in of a session; the program is `$1`."""
    return (
        scripts.session_directory(runtime, name)
        + f'export DIRECTORY="$directory" BIND={bind} PORT={port}\n'
        + f'exec python3 -c "$1" {name}\n'
    )


def name_of(process: psutil.Process) -> str | None:
    """Return a process's name, unless it has just ended."""
    with suppress(psutil.NoSuchProcess):
        return str(process.name())
    return None


class HostServers:
    """Stand-ins on the host itself, as the user that jlr logs in as."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.home = account.home
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._started: set[str] = set()

    def start(self, name: str, port: int = 0) -> int:
        argv = ("sh", "-c", beginning(Bare(), name, "127.0.0.1", port), "sh", PROGRAM)
        self._running[name] = subprocess.Popen(
            argv,
            user=self._account.uid,
            group=self._account.home.stat().st_gid,
            extra_groups=(),
            env={"HOME": str(self._account.home), "PATH": "/usr/bin:/bin"},
            cwd="/",
        )
        self._started.add(name)
        pid = self._running[name].pid
        found = f"jlr/servers/*/{name}/runtime/jpserver-{pid}.json"
        state = self._account.home / ".local/state"
        until(lambda: list(state.glob(found)), f"the start of `{name}`")
        return pid

    def running(self, name: str) -> list[psutil.Process]:
        """Return the user's processes of that name, but for those that wait to be reaped."""
        return [p for p in self._account.processes() if lives(p) and name_of(p) == name]

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def end(self) -> None:
        """Kill them all, and remove the folders of all that were started."""
        for name in tuple(self._running):
            self.kill(name)
        for folder in self.home.glob(".local/state/jlr/servers/*/*"):
            if folder.name in self._started:
                until(partial(is_removed, folder), f"the removal of `{folder}`")


def is_removed(folder: Path) -> bool:
    """Remove a session's folder; return whether it is gone. The recorder writes once more."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def start_inside(container: Container, port: int, bind: str = "0.0.0.0") -> None:
    script = beginning(Containers(DOCKER), container.name, bind, port)
    container.engine.docker("exec", container.name, "rm", "-rf", f"/tmp/jlr-0/{container.name}")
    argv = ("exec", "--detach", container.name, "sh", "-c", script, "sh", PROGRAM)
    container.engine.docker(*argv)
    runtime = f"ls /tmp/jlr-0/{container.name}/runtime"
    look = ("exec", container.name, "sh", "-c", runtime)
    until(
        lambda: "jpserver" in container.engine.try_docker(*look).stdout,
        f"the server of `{container.name}`",
    )


class Squatter:
    """Another user's server on a port of the host; it answers, and notes what it is sent."""

    def __init__(self, port: int) -> None:
        self.visits = 0
        self.heard = b""
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                visitor, _ = self._listener.accept()
            except OSError:
                return
            self.visits += 1
            threading.Thread(target=self._listen_to, args=(visitor,), daemon=True).start()

    def _listen_to(self, visitor: socket.socket) -> None:
        with visitor, suppress(OSError):
            visitor.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while data := visitor.recv(65536):
                self.heard += data

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
