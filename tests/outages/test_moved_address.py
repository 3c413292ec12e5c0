"""A container gets another address, and another user's container the one that it had.

The forward goes to the container and not to the address: it follows, on the same local port, and
the new owner of the old address is sent nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from websocket import WebSocketException

from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import LabError
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.outages.parts import Work, observers, state, work_in
from tests.sessions.parts import started

PORT = 8888
TRIES = 8
# What the host needs to find out that an address is free, and then one look.
UNANSWERED = 5.0
BACK = 2.0
# Listens where Jupyter would, and writes down every byte.
LISTENER = f"""
import socketserver
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        while said := self.request.recv(65536):
            with open("/tmp/heard", "ab") as heard:
                heard.write(said)
socketserver.ThreadingTCPServer(("0.0.0.0", {PORT}), Handler).serve_forever()
"""
SAY = "import socket, sys; socket.create_connection((sys.argv[1], 8888), 10).sendall(b'hello')"


def _prefix() -> str:
    """Return how addresses of a random network begin; 198.18.0.0/15 is for tests (RFC 2544)."""
    return f"198.18.{secrets.randbelow(256)}"


class Bridge:
    """A network of containers on which a test chooses the addresses."""

    def __init__(self, engine: Engine, factory: ContainerFactory) -> None:
        self.name = f"{factory.prefix}net"
        self._engine, self._factory = engine, factory
        self._prefix = next(filter(self._made, (_prefix() for _ in range(TRIES))))

    def _made(self, prefix: str) -> bool:
        """Make it with these addresses, unless others have some of them."""
        try:
            self._engine.docker("network", "create", f"--subnet={prefix}.0/24", self.name)
        except LabError as taken:
            if "overlaps" not in str(taken):
                raise
            return False
        return True

    def remove(self) -> None:
        self._factory.remove_all()
        self._engine.docker("network", "rm", self.name)

    def address(self, container: Container) -> str:
        return container.inspect(
            f'{{{{(index .NetworkSettings.Networks "{self.name}").IPAddress}}}}'
        )

    def disconnect(self, container: Container) -> str:
        had = self.address(container)
        self._engine.docker("network", "disconnect", self.name, container.name)
        return had

    def connect(self, container: Container, last: int = 99) -> str:
        """Give a container the address that ends with `last`."""
        address = f"{self._prefix}.{last}"
        self._engine.docker("network", "connect", f"--ip={address}", self.name, container.name)
        return address

    def give(self, address: str) -> Stranger:
        """Start another user's container at an address, with a server on Jupyter's port."""
        where = ("--network", self.name, f"--ip={address}")
        return Stranger(
            self._factory("lab/plain", "python3", "-c", LISTENER, options=where), address
        )


class Stranger:
    def __init__(self, container: Container, address: str) -> None:
        self._container = container
        wait_until(self._listens, "the start of the stranger's server")
        container.execute("python3", "-c", SAY, address)
        wait_until(lambda: self.heard() == "hello", "what it is told")

    def _listens(self) -> bool:
        tables = self._container.execute("cat", "/proc/net/tcp")
        return f":{PORT:04X} 00000000:0000 0A" in tables

    def heard(self) -> str:
        return self._container.execute("sh", "-c", "cat /tmp/heard 2>/dev/null; :")


@pytest.fixture
def bridge(engine: Engine, container: ContainerFactory) -> Iterator[Bridge]:
    made = Bridge(engine, container)
    yield made
    made.remove()


@pytest.fixture
def inside(bridge: Bridge, container: ContainerFactory) -> Container:
    return container(options=("--network", bridge.name))


@pytest.fixture
def work(laptop: Laptop, inside: Container, account: Account) -> Iterator[Work]:
    """A kernel in it, whose forward hears of what happens to the container."""
    others = observers(account)  # of laptops that outlast a test
    with work_in(started(laptop, inside)) as begun:
        wait_until(lambda: observers(account) > others, "the link's observing the containers")
        yield begun


def test_a_container_that_moves_is_followed_and_its_page_connects_anew(
    work: Work, bridge: Bridge, inside: Container
) -> None:
    had = bridge.disconnect(inside)
    with pytest.raises((WebSocketException, OSError)):  # and does not hang without a far end
        work.kernel.run("kept")
    assert bridge.connect(inside) != had
    work.comes_back(BACK)


def test_the_new_owner_of_the_old_address_is_sent_nothing(
    work: Work, bridge: Bridge, inside: Container
) -> None:
    stranger = bridge.give(bridge.disconnect(inside))
    work.comes_back(BACK)  # it has no address at all, and is reached nevertheless
    bridge.connect(inside)
    work.comes_back(BACK)
    assert stranger.heard() == "hello"


def test_a_move_while_the_connection_was_away_is_followed(
    work: Work, bridge: Bridge, inside: Container, sshd: SSHServer
) -> None:
    sshd.stop()
    try:
        stranger = bridge.give(bridge.disconnect(inside))
        bridge.connect(inside)
    finally:
        sshd.start()
    work.comes_back(BACK)
    assert stranger.heard() == "hello"


def test_a_restart_at_another_address_is_told_at_once_and_served_after_a_new_start(
    laptop: Laptop, work: Work, bridge: Bridge, inside: Container
) -> None:
    had = bridge.address(inside)
    inside.engine.docker("stop", "--time=0", inside.name)
    wait_until(lambda: state(laptop)[0] == "container-stopped", "the state", timeout=BACK)
    stranger = bridge.give(had)
    inside.engine.docker("start", inside.name)
    assert bridge.address(inside) != had
    with pytest.raises(OSError, match=r"503|closed|reset"):
        work.session.ask("api/status")
    assert "was restarted" in state(laptop)[1]
    again = started(laptop, inside)
    assert again.port == work.session.port
    assert again.ask("api/status")["kernels"] == 0
    assert stranger.heard() == "hello"


def test_a_move_without_an_event_is_found_at_the_first_refusal(
    laptop: Laptop,
    bridge: Bridge,
    inside: Container,
    another_sshd: SSHServerFactory,
    account: Account,
    keys: Keys,
) -> None:
    """With no session to spare nothing is observed, and it must work with one."""
    laptop.add_host("narrow", another_sshd("MaxSessions 1"), account, key=keys.private)
    others = observers(account)
    with work_in(started(laptop, inside, host="narrow")) as work:
        wait_until(lambda: observers(account) > others, "the link's observing the containers")
        assert state(laptop)[0] == "up"
        assert laptop.jlr("logs", inside.name).status == 0
        wait_until(lambda: observers(account) == others, "its giving way")
        bridge.disconnect(inside)
        bridge.connect(inside)
        work.comes_back(UNANSWERED)
