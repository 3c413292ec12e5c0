"""Another container on the bridge answers ARP for a session's address, and is sent nothing."""

from __future__ import annotations

import importlib.resources
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.sessions.parts import Session, started

ATTACK = (importlib.resources.files(__package__) / "arp_program.py").read_text("utf-8")
PORT = 8888
ASKED = 10


class Neighbour:
    """A container that takes an address of the bridge it is on."""

    def __init__(self, container: Container, address: str) -> None:
        self._container = container
        self._address = address

    def is_believed(self) -> bool:
        """Return whether it is sent what the host itself sends to the address."""
        with suppress(OSError), socket.create_connection((self._address, PORT), 0.5) as there:
            there.sendall(b"hello ")
        return "hello" in self.heard()

    def heard(self) -> str:
        """Return all that it was sent."""
        return self._container.execute("sh", "-c", "cat /tmp/heard 2>/dev/null; :")

    def forget(self) -> None:
        self._container.execute("rm", "-f", "/tmp/heard")


def neighbour(container: ContainerFactory, address: str, *options: str) -> Neighbour:
    """Start a neighbour, with no more than docker gives to each container."""
    attacker = container("lab/plain", "python3", "-c", ATTACK, address, options=options)
    return Neighbour(attacker, address)


def address_of(inside: Container) -> str:
    template = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
    return inside.inspect(template).split()[0]


def asked(session: Session) -> None:
    """Ask the session for many things, each on a connection of its own."""
    for _ in range(ASKED):
        assert session.ask("api/status")["started"]


def relays(account: Account) -> int:
    """Return how many relays into containers run for a user of the host."""
    lines = [" ".join(process.cmdline()) for process in account.processes()]
    return sum("exec --interactive" in line and "python" in line for line in lines)


@pytest.fixture
def shared(engine: Engine, container: ContainerFactory) -> Iterator[str]:
    """A network as compose makes one."""
    name = f"{container.prefix}shared"
    engine.docker("network", "create", name)
    yield name
    container.remove_all()
    engine.docker("network", "rm", name)


@pytest.mark.parametrize("network", ["bridge", "shared"])
def test_the_neighbour_of_an_existing_container_is_sent_nothing(
    laptop: Laptop, container: ContainerFactory, shared: str, network: str
) -> None:
    network = shared if network == "shared" else network
    inside = container(options=("--network", network))
    beside = neighbour(container, address_of(inside), "--network", network)
    session = started(laptop, inside)
    wait_until(beside.is_believed, "the host's belief in the neighbour's answers")
    asked(session)
    assert beside.is_believed(), "the attack went on"
    assert set(beside.heard().split()) == {"hello"}
