"""A host with stand-ins for GPUs, and the users who share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.gpus.stand_in import Gpus
from tests.lab.accounts import Account, claimed_account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import private_folder
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.lab.sshd import SSHServer
from tests.sessions.parts import link_all_but


@dataclass(frozen=True)
class GpuHost:
    """A host with GPUs."""

    server: SSHServer
    gpus: Gpus  # what is stood in for
    programs: Path  # a folder on its PATH


@pytest.fixture(scope="session")
def system_path() -> Iterator[Path]:
    """The programs of a host that has no podman, which each look at GPUs would ask too."""
    with private_folder("programs") as folder:
        link_all_but(["podman"], folder)
        yield folder


@pytest.fixture(scope="session")
def gpu_server(engine: Engine, keys: Keys, system_path: Path) -> Iterator[tuple[SSHServer, Path]]:
    with private_folder("gpus") as programs:
        environment = f'SetEnv "PATH={programs}:{system_path}" "DOCKER_HOST={engine.url}" GOGC=400'
        with running_sshd(engine, keys, environment) as server:
            yield server, programs


@pytest.fixture
def gpu_host(gpu_server: tuple[SSHServer, Path]) -> Iterator[GpuHost]:
    """A host with two free GPUs."""
    server, programs = gpu_server
    gpus = Gpus(programs)
    gpus.install()
    yield GpuHost(server, gpus, programs)
    gpus.remove()


@pytest.fixture(scope="module")
def laptop_of_ada(
    gpu_server: tuple[SSHServer, Path], account: Account, keys: Keys
) -> Iterator[Laptop]:
    with new_laptop(gpu_server[0], account, keys) as laptop:
        yield laptop


@pytest.fixture
def ada(gpu_host: GpuHost, laptop_of_ada: Laptop) -> Laptop:
    """A user's laptop, the same for all tests of a file; the host is `lab`."""
    return laptop_of_ada


@pytest.fixture(scope="session")
def other_account(engine: Engine) -> Iterator[Account]:
    """Another user of the host."""
    with claimed_account() as claimed:
        yield claimed


@pytest.fixture
def bert(gpu_host: GpuHost, other_account: Account, keys: Keys) -> Iterator[Laptop]:
    """Another user's laptop."""
    with new_laptop(gpu_host.server, other_account, keys) as laptop:
        yield laptop


@pytest.fixture
def without_engine(
    gpu_host: GpuHost, other_account: Account, keys: Keys, engine: Engine, system_path: Path
) -> Iterator[Laptop]:
    """The laptop of a user who may not use the host's engine."""
    environment = f'SetEnv "PATH={gpu_host.programs}:{system_path}" "DOCKER_HOST=unix:///none"'
    with (
        running_sshd(engine, keys, environment) as server,
        new_laptop(server, other_account, keys) as laptop,
    ):
        yield laptop


Sleeper = Callable[[Account], int]


@pytest.fixture
def sleeper(engine: Engine) -> Iterator[Sleeper]:
    """Start a process of a user that does nothing, and return its pid; end it afterwards."""
    with ExitStack() as stack:

        def start(account: Account) -> int:
            import psutil

            process = psutil.Popen(("sleep", "600"), user=account.uid, group=account.uid)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return int(process.pid)

        yield start


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The folder that stands for `/tmp` in a script."""
    tmp_path.chmod(0o1777)
    for parent in tmp_path.parents[:3]:
        parent.chmod(0o1777)
    return tmp_path
