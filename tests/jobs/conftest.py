"""Jobs in a container of their own, in that of a session, and on the host itself."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.jobs.parts import Jobs
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys, new_laptop
from tests.lab.sshd import SSHServer
from tests.long import LONG
from tests.mounts.parts import remember_session

PLACES = ("image", "session", "host")
every_place = pytest.mark.parametrize("jobs", PLACES, indirect=True)
# For what happens on the laptop, wherever the job runs.
one_place = pytest.mark.parametrize("jobs", [LONG("image"), LONG("session"), "host"], indirect=True)


@pytest.fixture(scope="module")
def containers(engine: Engine) -> Iterator[ContainerFactory]:
    """Names and removes the containers of a module's jobs."""
    factory = ContainerFactory(engine, f"lab-{secrets.token_hex(4)}-")
    yield factory
    factory.remove_all()


@pytest.fixture(scope="module")
def inside(containers: ContainerFactory) -> Container:
    """The session's container."""
    return containers("lab/plain")


@pytest.fixture(scope="module")
def owner(sshd: SSHServer, account: Account, keys: Keys, inside: Container) -> Iterator[Laptop]:
    """The laptop that begins the jobs."""
    with new_laptop(sshd, account, keys) as fresh:
        remember_session(fresh, inside.name, "docker")
        yield fresh


@pytest.fixture(params=["image", LONG("session"), "host"])
def jobs(
    request: pytest.FixtureRequest, owner: Laptop, inside: Container, containers: ContainerFactory
) -> Jobs:
    """Jobs in one of the places; `every_place` are all three, `one_place` is the host."""
    where = {
        "image": ("--image", "lab/plain"),
        "session": ("--in", inside.name),
        "host": ("--runtime", "none"),
    }
    return Jobs(owner, where[request.param], containers)
