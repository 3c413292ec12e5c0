"""One JupyterLab for all outages, behind a network that can break, and real commands."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext

from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.network import Network
from tests.lab.ports import free_port
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.outages.parts import Work, work_in
from tests.sessions.parts import started

# A dead connection is noticed within four seconds: one to wait, three to be answered in.
QUICK = ("ServerAliveInterval 1", "ServerAliveCountMax 3")


@pytest.fixture(scope="session")
def lasting_container(engine: Engine) -> Iterator[Container]:
    """A container in which JupyterLab runs for all of these tests."""
    factory = ContainerFactory(engine, f"lab-{secrets.token_hex(4)}-")
    yield factory()
    factory.remove_all()


@pytest.fixture(scope="module")
def network(sshd: SSHServer) -> Iterator[Network]:
    made = Network(sshd.port)
    yield made
    made.close()


@pytest.fixture(scope="module")
def lasting_work(
    file_laptop: Laptop,
    network: Network,
    lasting_container: Container,
    sshd: SSHServer,
    account: Account,
    keys: Keys,
) -> Iterator[Work]:
    """A kernel for all outages of a file, on a host that is reached over the network."""
    add_far(file_laptop, network, sshd, account, keys)
    port = ("--port", str(free_port()))
    with work_in(started(file_laptop, lasting_container, *port, host="far")) as begun:
        yield begun


@pytest.fixture
def work(lasting_work: Work) -> Work:
    """The same kernel; a file may give its tests another one."""
    return lasting_work


@pytest.fixture
def chromium(file_chromium: BrowserContext) -> Iterator[BrowserContext]:
    yield file_chromium
    for page in file_chromium.pages[1:]:
        page.close()


def add_far(
    laptop: Laptop, network: Network, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.add_host(
        "far",
        sshd,
        account,
        key=keys.private,
        address=network.address,
        port=network.line.port,
        options=QUICK,
    )
