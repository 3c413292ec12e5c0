"""The machine with GPUs that `build` made a host: its sshd, its users, a laptop."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab.accounts import Account, claimed_account
from tests.lab.laptop import Laptop
from tests.lab.programs import Result
from tests.lab.remote_host import new_keys, new_laptop
from tests.lab.sshd import SSHServer
from tests.sessions.parts import Kernel, Session

METAL = Path("/opt/metal")
ROOT = "PermitRootLogin yes"
APPTAINER = "/var/tmp/jlr-lab/apptainer/usr/bin"
PATH = f"{APPTAINER}:{METAL}/bin:/usr/local/nvidia/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
# PyTorch of the machine, for a notebook in the image.
TORCH = """
import glob, sys
sys.path += glob.glob("/opt/torch/.venv/lib/python3*/site-packages")
import torch
"""


@dataclass(frozen=True)
class GpuRuntime:
    """A way to have containers: the host's alias, the options, and the image."""

    name: str
    host: str
    image: str
    options: tuple[str, ...]

    def words(self, *more: str) -> tuple[str, ...]:
        torch = ("--volume", "/opt/torch:/opt/torch:ro", "--volume", "/opt/work:/work")
        return ("--image", self.image, *self.options, *torch, *more)


PODMAN = GpuRuntime("podman", "root", "lab/jupyter:1", ("--runtime", "podman"))
RUNTIMES = (
    PODMAN,
    GpuRuntime("docker", "lab", "lab/jupyter:1", ("--runtime", "docker", "--sudo")),
    GpuRuntime("apptainer", "lab", f"{METAL}/root", ("--runtime", "apptainer")),
)


@dataclass(frozen=True)
class Metal:
    """The host, seen from a laptop."""

    laptop: Laptop
    gpus: int

    def jlr(self, *words: str, status: int = 0) -> Result:
        """Run `jlr` and check its exit code."""
        result = self.laptop.jlr("--no-input", *words, timeout=240)
        assert result.status == status, result
        return result

    def report(self, host: str) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.jlr("gpus", host, "--json").stdout)
        return report

    @contextmanager
    def session(self, runtime: GpuRuntime, name: str, *words: str) -> Iterator[Session]:
        """Give a session in a new container, which is removed afterwards."""
        argv = ("start", runtime.host, name, *runtime.words(*words), "--no-browser", "--json")
        report = json.loads(self.jlr(*argv).stdout)
        try:
            yield Session(self.laptop, report)
        finally:
            self.jlr("rm", f"{runtime.host}/{name}", "--force", "--yes")


@contextmanager
def kernel(session: Session) -> Iterator[Kernel]:
    with session.notebook("metal.ipynb") as opened:
        opened.await_start()
        yield opened


@pytest.fixture(scope="session")
def metal() -> Iterator[Metal]:
    if not METAL.exists():
        pytest.skip("no `tests/metal/build` has run on this machine")
    Path("/opt/work").mkdir(mode=0o777, exist_ok=True)
    Path("/opt/work").chmod(0o777)
    with (
        new_keys() as keys,
        claimed_account() as account,
        SSHServer(keys.authorized, environment={"PATH": PATH}, options=[ROOT]) as server,
        new_laptop(server, account, keys) as laptop,
    ):
        root = Account("root", 0, Path("/root"), "/bin/bash")
        laptop.add_host("root", server, root, key=keys.private)
        # Such a machine may have neither bridges nor iptables.
        laptop.settle('[hosts.root]\nnetwork = "host"\n')
        listed = laptop.ssh("root", "nvidia-smi", "-L").stdout.splitlines()
        yield Metal(laptop, sum(line.startswith("GPU ") for line in listed))


@pytest.fixture(params=RUNTIMES, ids=lambda runtime: runtime.name)
def runtime(request: pytest.FixtureRequest) -> GpuRuntime:
    chosen: GpuRuntime = request.param
    program = chosen.name if chosen.name != "docker" else "dockerd"
    if not shutil.which(program, path=PATH):
        pytest.skip(f"`{program}` was not carried to this machine")
    return chosen


def listed(result: Result) -> list[str]:
    return re.findall(r"UUID: (GPU-[0-9a-f-]+)", result.stdout)
