"""Real links, of a laptop to the lab's sshd, and light servers to forward to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jlremote.errors import LinkLost
from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.link.desk import Desk, at_desk, forget_sessions
from tests.link.fakes import Watched
from tests.link.servers import HostServers


@pytest.fixture
def servers(account: Account) -> Iterator[HostServers]:
    """Servers on the host itself, ended when the test ends."""
    started = HostServers(account)
    yield started
    started.end()


@pytest.fixture
def desk(laptop: Laptop) -> Iterator[Desk]:
    """A person at the laptop whose commands run in this very process."""
    with at_desk(laptop) as sitting:
        yield sitting


@pytest.fixture
def file_desk(file_laptop: Laptop) -> Iterator[Desk]:
    """The same at the laptop of all tests of a file, whose link may run already."""
    with at_desk(file_laptop) as sitting:
        yield sitting


@pytest.fixture
def clean_laptop(file_laptop: Laptop) -> Iterator[Laptop]:
    """The file's laptop, which has no session when a test begins, but may have a link to `lab`."""
    config, known = file_laptop.ssh_config, file_laptop.known_hosts
    before = config.read_text(), known.read_text()
    environment = dict(file_laptop.environment)
    yield file_laptop
    file_laptop.environment.clear()
    file_laptop.environment.update(environment)
    forget_sessions(file_laptop)
    file_laptop.settings.unlink(missing_ok=True)
    if (config.read_text(), known.read_text()) != before:
        file_laptop.shut_down()
        config.write_text(before[0])
        known.write_text(before[1])


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.supervisor.end()
    made.dialer.outcomes.put(LinkLost("the test is over"))
