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
from tests.long import LONG
from tests.outages.parts import observers
from tests.sessions.parts import Session, started

ATTACK = (importlib.resources.files(__package__) / "arp_program.py").read_text("utf-8")
PORT = 8888
ASKED = 10


class Neighbour:
    """A container that takes an address of the bridge it is on."""

    def __init__(self, container: Container, address: str) -> None:
        self._container = container
        self._address = address

    def await_belief(self) -> None:
        """Wait until it is sent what the host itself sends to the address."""
        wait_until(self._is_believed, "the host's belief in the neighbour's answers")

    def _is_believed(self) -> bool:
        with suppress(OSError), socket.create_connection((self._address, PORT), 0.5) as there:
            there.sendall(b"hello ")
        return "hello" in self.heard()

    def heard(self) -> str:
        return self._container.execute("sh", "-c", "cat /tmp/heard 2>/dev/null; :")

    def was_sent_nothing(self) -> None:
        """Check that it was sent nothing else, and that it still would be."""
        assert set(self.heard().split()) == {"hello"}
        self.forget()
        self.await_belief()

    def forget(self) -> None:
        self._container.execute("rm", "-f", "/tmp/heard")


def neighbour(container: ContainerFactory, *addresses: str, network: str = "bridge") -> Neighbour:
    """Start a neighbour with what docker gives to each; the last address is the one believed."""
    options = ("--network", network)
    attacker = container("lab/plain", "python3", "-c", ATTACK, *addresses, options=options)
    return Neighbour(attacker, addresses[-1])


def address_of(inside: Container) -> str:
    template = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
    return inside.inspect(template).split()[0]


def asked(session: Session) -> None:
    """Ask the session for many things, each on a connection of its own."""
    for _ in range(ASKED):
        assert session.ask("api/status")["started"]


def by_relay(session: Session, account: Account, inside: Container) -> bool:
    """Ask the session once, and return whether a relay runs then."""
    with suppress(OSError):  # the moment of the change cuts connections
        session.ask("api/status")
    return relays(account, inside)


def relays(account: Account, inside: Container) -> bool:
    """Return whether a relay into a container runs for a user of the host."""
    container_id = inside.inspect("{{.Id}}")
    lines = account.command_lines()
    return any("exec" in words and container_id in words and "-c" in words for words in lines)


@pytest.fixture
def shared(engine: Engine, container: ContainerFactory) -> Iterator[str]:
    name = f"{container.prefix}shared"
    engine.docker("network", "create", name)
    yield name
    container.remove_all()
    engine.docker("network", "rm", name)


@pytest.mark.parametrize("network", ["bridge", LONG("shared")])
def test_the_neighbour_of_an_existing_container_is_sent_nothing(
    laptop: Laptop, container: ContainerFactory, shared: str, network: str
) -> None:
    network = shared if network == "shared" else network
    container("lab/plain", options=("--network", network))
    inside = container(options=("--network", network))
    session = started(laptop, inside)
    beside = neighbour(container, address_of(inside), network=network)
    beside.await_belief()
    asked(session)
    beside.was_sent_nothing()


def test_a_new_session_has_no_neighbour_that_could_take_its_address(
    laptop: Laptop, container: ContainerFactory, account: Account
) -> None:
    session = started(laptop, container.name(), "--image", "lab/jupyter")
    inside = Container(container.engine, session.name)
    # It takes the address of this one, too, which shows that the attack goes on.
    another = container("lab/plain", "python3", "-m", "http.server", str(PORT))
    beside = neighbour(container, address_of(inside), address_of(another))
    beside.await_belief()
    asked(session)
    assert not relays(account, inside), "it is alone, so the bytes go by its address"
    beside.was_sent_nothing()


def test_who_joins_the_network_of_a_session_is_sent_nothing(
    laptop: Laptop, engine: Engine, container: ContainerFactory, account: Account
) -> None:
    before = observers(account)
    session = started(laptop, container.name(), "--image", "lab/jupyter")
    inside = Container(engine, session.name)
    wait_until(lambda: observers(account) > before, "the link's observing the containers")
    network = inside.inspect("{{.HostConfig.NetworkMode}}")
    beside = neighbour(container, address_of(inside), network=network)
    wait_until(lambda: by_relay(session, account, inside), "the relay into it")
    beside.forget()
    beside.await_belief()
    asked(session)
    beside.was_sent_nothing()


def test_a_container_that_is_alone_on_its_network_needs_no_relay(
    laptop: Laptop, container: ContainerFactory, shared: str, account: Account
) -> None:
    inside = container(options=("--network", shared))
    session = started(laptop, inside)
    asked(session)
    assert not relays(account, inside)
    laptop.jlr("disconnect", "lab")
    container("lab/plain", options=("--network", shared))
    session = started(laptop, inside)
    asked(session)
    assert relays(account, inside)
