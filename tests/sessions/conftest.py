"""One session that many tests look at, and none of them ends."""

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
from tests.link.conftest import clean_laptop, desk
from tests.link.desk import forget_sessions
from tests.sessions.parts import Session, started

__all__ = ["clean_laptop", "desk"]


@pytest.fixture
def laptop(clean_laptop: Laptop) -> Laptop:
    """The file's laptop, which has no session when a test begins; a new one costs a link."""
    return clean_laptop


@pytest.fixture(scope="session")
def lasting_laptop(sshd: SSHServer, account: Account, keys: Keys) -> Iterator[Laptop]:
    """A laptop that lasts as long as the tests."""
    with new_laptop(sshd, account, keys) as fresh:
        yield fresh


@pytest.fixture(scope="session")
def session(lasting_laptop: Laptop, engine: Engine) -> Iterator[Session]:
    """A session in a container that was there before; whoever changes it puts it back."""
    factory = ContainerFactory(engine, f"lab-{secrets.token_hex(4)}-")
    here = factory(options=("--workdir", "/project"))
    here.execute("sh", "-c", "mkdir data models; touch README.md train.py")
    yield started(lasting_laptop, here)
    factory.remove_all()


@pytest.fixture(scope="module")
def here(containers: ContainerFactory) -> Container:
    """A container for all tests of a file; the first one's start launches Jupyter in it."""
    return containers()


@pytest.fixture(scope="module")
def file_other_laptop(sshd: SSHServer, account: Account, keys: Keys) -> Iterator[Laptop]:
    """The same person's second laptop for all tests of a file."""
    with new_laptop(sshd, account, keys) as fresh:
        yield fresh


@pytest.fixture
def other_laptop(file_other_laptop: Laptop) -> Iterator[Laptop]:
    """The same person's second laptop, without a session."""
    yield file_other_laptop
    forget_sessions(file_other_laptop)
