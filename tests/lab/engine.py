"""A dockerd of the lab's own: every run on this machine shares it, and the last one stops it."""

from __future__ import annotations

import fcntl
import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any

import psutil

from tests.lab.place import LabError, Say, exclusive, open_lock, root, try_lock, wait_for_lock
from tests.lab.programs import (
    LESS_GARBAGE,
    SYSTEM_PATH,
    Result,
    attempt,
    end,
    run,
    wait_ended,
    wait_until,
    write_program,
)

GROUP = "jlrlab"
# Two dockerds would flush each other's firewall rules, whichever folders they use.
MACHINE_LOCK = Path("/run/lock/jlr-lab-engine.lock")
# Each session has a network of its own, and docker has room for thirty. Where docker's first one is
# stays as it is; 198.18.0.0/15 is for tests (RFC 2544).
ROOM = (
    "--default-address-pool=base=172.17.0.0/16,size=16",
    "--default-address-pool=base=198.19.0.0/16,size=24",
)


@dataclass(frozen=True)
class Engine:
    """A dockerd under `folder`; members of the group `jlrlab` may use its socket."""

    folder: Path

    @property
    def socket(self) -> Path:
        return self.folder / "docker.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def log(self) -> Path:
        return self.folder / "dockerd.log"

    def docker(self, *argv: str, timeout: float = 60, stdin: str | None = None) -> str:
        """Run `docker …` against this engine and return its stdout."""
        return run("docker", "-H", self.url, *argv, timeout=timeout, stdin=stdin).strip()

    def try_docker(self, *argv: str, timeout: float = 60) -> Result:
        """Run `docker …` against this engine, however it ends."""
        return attempt("docker", "-H", self.url, *argv, timeout=timeout)

    def pause(self, name: str) -> None:
        """Pause a container; the kernel does not freeze one while it is too busy."""
        pause = ("pause", name)
        wait_until(lambda: self.try_docker(*pause).status == 0, f"the pause of {name}")

    def answers(self) -> bool:
        return self.socket.exists() and self.try_docker("version").status == 0

    def process(self) -> psutil.Process | None:
        """Return the dockerd of this folder; a pid alone proves nothing, its arguments do."""
        try:
            pid = int((self.folder / "dockerd.pid").read_text(encoding="utf-8"))
            process = psutil.Process(pid)
            return process if str(self.folder / "data") in process.cmdline() else None
        except (OSError, ValueError, psutil.Error):
            return None

    def shims(self) -> list[psutil.Process]:
        """Return the processes that hold its containers, which are no children of dockerd."""
        address = str(self.folder / "exec/containerd/containerd.sock")
        every = psutil.process_iter(["cmdline"])
        return [each for each in every if address in (each.info["cmdline"] or ())]

    def remove_containers(self, prefix: str = "") -> list[str]:
        """Remove containers and their networks of jlr by prefix; return the containers' names."""
        listed = self._api("GET", "/containers/json?all=1")
        found = [each["Names"][0].removeprefix("/") for each in listed if each["Names"]]
        names = [name for name in found if name.startswith(prefix)]
        for name in names:
            self._api("DELETE", f"/containers/{name}?force=1&v=1")
        for network in self._api("GET", "/networks"):
            if network["Name"].startswith(f"jlr-{prefix}"):
                self._api("DELETE", f"/networks/{network['Id']}")
        return names

    def _api(self, method: str, path: str) -> Any:
        """Ask dockerd itself: its client takes 15 ms of CPU to start."""
        connection = HTTPConnection("localhost")
        with socket.socket(socket.AF_UNIX) as dockerd:
            dockerd.settimeout(60)
            dockerd.connect(str(self.socket))
            connection.sock = dockerd
            connection.request(method, path)
            answer = connection.getresponse()
            text = answer.read()
        going = method == "DELETE" and answer.status in (404, 409)
        if answer.status >= 400 and not going:
            raise LabError(f"dockerd on {method} {path}: {answer.status} {text!r}")
        return None if going or not text else json.loads(text)


@contextmanager
def running_engine(say: Say = print) -> Iterator[Engine]:
    """Give the lab's engine, started unless it runs; the last one to leave stops it.

    Every user holds a shared lock for as long as it lives, so a run that was killed counts as gone.
    """
    engine = Engine(root() / "engine")
    with open_lock(engine.folder / "users.lock") as users:
        with exclusive(engine.folder / "start.lock", say, "the engine to start or stop"):
            if try_lock(users):
                stop(engine)  # a killed run left it behind
            fcntl.flock(users, fcntl.LOCK_SH)
            if not engine.answers():
                start(engine, say)
        try:
            yield engine
        finally:
            with exclusive(engine.folder / "start.lock", say, "the engine to start or stop"):
                if try_lock(users):
                    stop(engine)


def start(engine: Engine, say: Say) -> None:
    """Start dockerd and wait until it answers."""
    run("groupadd", "--force", "--system", GROUP)
    with open_lock(MACHINE_LOCK) as machine:
        wait_for_lock(machine, say, "another lab's engine on this machine", timeout=900)
        spawn(engine, machine, *ROOM)
    wait_until(lambda: engine.answers() or lock_is_free(), "the start of dockerd")
    if not engine.answers():
        tail = engine.log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise LabError(f"dockerd did not start:\n{tail}")
    engine.remove_containers()


def lock_is_free() -> bool:
    """Return whether no dockerd holds the machine's lock, as when it ended."""
    with open_lock(MACHINE_LOCK) as machine:
        return try_lock(machine)


def spawn(engine: Engine, lock: IO[str], *options: str, toolkit: bool = True) -> None:
    """Start dockerd, which inherits the lock; without `toolkit` it refuses `--gpus`."""
    folder = engine.folder
    path = f"{gpu_hook(folder)}:{SYSTEM_PATH}" if toolkit else SYSTEM_PATH
    argv = (
        *("setsid", "--fork", "dockerd", "--shutdown-timeout", "5"),
        *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        *("--pidfile", str(folder / "dockerd.pid"), "--host", engine.url, "--group", GROUP),
        # NVIDIA's runtime, as far as it does not take hardware.
        *("--add-runtime", "nvidia=runc"),
        *options,
    )
    with engine.log.open("wb") as log:
        subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": path, "GOGC": LESS_GARBAGE},  # its helpers have it, too, three a container
            pass_fds=(lock.fileno(),),
            check=True,
        )


HOOK = """\
#!/bin/sh
bundle=$(sed -n 's/.*"bundle": *"\\([^"]*\\)".*/\\1/p')
grep -q '"NVIDIA_REQUIRE_CUDA=cuda[^"]*99' "$bundle/config.json" || exit 0
cat >&2 <<END
Auto-detected mode as 'legacy'
nvidia-container-cli: requirement error: unsatisfied condition: cuda>=99.0, please update your \
driver to a newer version, or use an earlier cuda container
END
exit 1
"""


def gpu_hook(folder: Path) -> Path:
    """Return a folder whose `nvidia-container-runtime-hook` lets dockerd accept `--gpus`.

    dockerd offers the option only when it finds that program. It stands in for hardware alone, and
    refuses an image for CUDA 99 as the real one refuses it.
    """
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    write_program(programs / "nvidia-container-runtime-hook", HOOK)
    return programs


def stop(engine: Engine) -> None:
    """Remove every container and each image without a name, and end dockerd if it runs."""
    process = engine.process()
    if process is not None:
        if engine.answers():
            engine.remove_containers()
            # What tests have built again under the same name.
            engine.try_docker("image", "prune", "--force", timeout=300)
        family = [process, *process.children(recursive=True)]
        process.terminate()
        end(wait_ended(family, 15))
    # Of a container that dockerd was killed over, and no longer knows.
    for shim in engine.shims():
        with suppress(psutil.NoSuchProcess):
            end([*shim.children(recursive=True), shim])
