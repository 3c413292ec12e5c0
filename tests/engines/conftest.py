"""A host with docker and podman, with root and without, and an account that may use all of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import apptainer, nvidia_docker, podman
from tests.lab.accounts import Account, claimed_account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import Say
from tests.lab.podman import Podman
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.lab.sshd import SSHServer

IMAGE = "lab/jupyter"
SIF = "jupyter.sif"  # the same for Apptainer, in the home
NOWHERE = "unix:///nonexistent/docker.sock"


@dataclass(frozen=True)
class EnginesHost:
    """A host with every engine.

    Attributes:
        engine: the lab's docker.
        account: may use that and podman, and `sudo` without a password.
        server: its sshd.
    """

    engine: Engine
    account: Account
    server: SSHServer

    def remove(self, runtime: str, name: str) -> None:
        """Remove a container and its image; a session of Apptainer ends with its account."""
        if runtime == "apptainer":
            self.account.end_processes()
        elif "docker" in runtime:
            self.engine.remove_containers(name)
            self.engine.try_docker("rmi", f"lab/{name}:1")
        else:
            podman = podman_of(runtime, self.account)
            podman.attempt("rm", "--force", "--time=0", name)
            podman.attempt("rmi", f"lab/{name}:1")
            label = f"--filter=label=org.jlremote.session={name}"
            for network in podman("network", "ls", "--quiet", label).split():
                podman("network", "rm", network)


def podman_of(runtime: str, account: Account) -> Podman:
    return Podman(None if runtime.startswith("sudo ") else account)


@contextmanager
def sudo_host(
    kind: str, password: str, engine: Engine, keys: Keys, say: Say
) -> Iterator[EnginesHost]:
    """Give a host whose account has that kind of `sudo` (see `podman.may_sudo`) and password."""
    if reasons := podman.missing():
        pytest.skip("; ".join(reasons))
    with (
        claimed_account() as account,
        podman.prepared(account, engine, [], say),
        running_sshd(engine, keys) as server,
    ):
        account.set_password(password)
        podman.may_sudo(account, kind)
        yield EnginesHost(engine, account, server)


@pytest.fixture(scope="session")
def engines_host(engine: Engine, keys: Keys, say: Say) -> Iterator[EnginesHost]:
    if reasons := podman.missing() + apptainer.missing():
        pytest.skip("; ".join(reasons))
    file = apptainer.ensure(engine, say)
    with claimed_account() as account, podman.prepared(account, engine, [IMAGE], say):
        programs = f"{_programs(account)}:{apptainer.environment()['PATH']}"
        (account.home / SIF).symlink_to(file)
        variables = podman.environment() | {"PATH": programs}
        podman.may_sudo(account, podman.FREELY)
        with running_sshd(engine, keys, environment=variables) as server:
            yield EnginesHost(engine, account, server)


def _programs(account: Account) -> Path:
    folder = account.home / "bin"
    folder.mkdir()
    nvidia_docker.install(folder, nvidia_docker.SECOND)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def engines_laptop(engines_host: EnginesHost, keys: Keys) -> Iterator[Laptop]:
    """A laptop that knows the host as `lab`."""
    with new_laptop(engines_host.server, engines_host.account, keys) as laptop:
        yield laptop


@pytest.fixture(scope="module")
def without_docker(engines_host: EnginesHost, engine: Engine, keys: Keys) -> Iterator[Laptop]:
    """A laptop that knows the host as `lab`, where docker's daemon does not run."""
    variables = podman.environment() | {"DOCKER_HOST": NOWHERE}
    with (
        running_sshd(engine, keys, environment=variables) as server,
        new_laptop(server, engines_host.account, keys) as laptop,
    ):
        yield laptop


@pytest.fixture
def name() -> str:
    """A name that no container has."""
    return f"lab-{secrets.token_hex(4)}"
