"""Real links, of a laptop to the lab's sshd, and light servers to forward to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.link.desk import Desk
from tests.link.servers import HostServers


@pytest.fixture
def servers(account: Account) -> Iterator[HostServers]:
    """Servers on the host itself, ended when the test ends."""
    started = HostServers(account)
    yield started
    started.end()


@pytest.fixture
def desk(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A person at the laptop whose commands run in this very process."""
    for name in laptop.environment.keys() - {"PATH"}:
        monkeypatch.setenv(name, laptop.environment[name])
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return Desk(laptop)
