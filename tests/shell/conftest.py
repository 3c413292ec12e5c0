"""A session that needs no Jupyter: a container, and the laptop's record of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys, new_laptop
from tests.lab.sshd import SSHServer
from tests.mounts.parts import remember_session


@pytest.fixture(scope="module")
def inside(engine: Engine) -> Iterator[Container]:
    """The session's container."""
    factory = ContainerFactory(engine, f"lab-{secrets.token_hex(4)}-")
    yield factory("lab/plain")
    factory.remove_all()


@pytest.fixture(scope="module")
def owner(sshd: SSHServer, account: Account, keys: Keys, inside: Container) -> Iterator[Laptop]:
    """A laptop with two sessions: the container's, the latest, and `lab/bare` on the host."""
    with new_laptop(sshd, account, keys) as fresh:
        remember_session(fresh, "bare", "none")
        remember_session(fresh, inside.name, "docker")
        yield fresh
