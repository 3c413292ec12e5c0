"""Jump hosts in network namespaces: the inner host cannot be reached but through the bastion."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jlremote.errors import Authentication, ConnectionRefused, Unreachable
from tests.lab.accounts import Account
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer, make_key
from tests.ssh.conftest import open_folder
from tests.ssh.laptop import Laptop, Person, logins
from tests.ssh.servers import Network


class Hosts:
    """A bastion and an inner host behind it, and a laptop whose config names both.

    Each takes a key of its own.
    """

    def __init__(self, network: Network, laptop: Laptop) -> None:
        self.network, self.laptop = network, laptop
        self.inner_key = make_key(laptop.folder / "inner")
        self.bastion = self._server(network.bastion, network.bastion_address, laptop.key)
        self.inner = self._server(network.inner, network.inner_address, self.inner_key)

    def _server(self, namespace: str, address: str, key: Path) -> SSHServer:
        allowed = self.laptop.authorize(key)
        listen = (f"ListenAddress {address}:22",)
        server = SSHServer(allowed, options=listen, host_key_kinds=["ed25519"], namespace=namespace)
        server.start()
        self.laptop.knows(server, address)
        return server

    def configure(self, account: Account, *settings: str, bastion: tuple[str, ...] = ()) -> None:
        common = (
            f"User {account.name}",
            f"UserKnownHostsFile {self.laptop.known_hosts}",
            "GlobalKnownHostsFile none",
            "StrictHostKeyChecking yes",
            "ConnectTimeout 6",
        )
        lines = [
            "Host lab",
            *settings,
            f"HostName {self.network.inner_address}",
            f"IdentityFile {self.inner_key}",
            "Host bastion Bastion",
            *bastion,
            f"HostName {self.network.bastion_address}",
            f"IdentityFile {self.laptop.key}",
            "Host *",
            *common,
        ]
        self.laptop.config.write_text("\n".join(lines) + "\n")

    def stop(self) -> None:
        self.inner.remove()
        self.bastion.remove()


@pytest.fixture(scope="module")
def network(account: Account) -> Iterator[Network]:
    with Network(os.getpid() % 200) as made:
        yield made


@pytest.fixture(scope="module")
def shared_hosts(network: Network, key_folder: Path) -> Iterator[Hosts]:
    both = Hosts(network, Laptop(open_folder(key_folder)))
    yield both
    both.stop()


@pytest.fixture
def hosts(shared_hosts: Hosts) -> Hosts:
    """The module's hosts, whose logs are empty."""
    for server in (shared_hosts.bastion, shared_hosts.inner):
        server.log.write_text("")
    return shared_hosts


@pytest.mark.parametrize(
    ("settings", "way"),
    [
        (("ConnectTimeout 1",), False),
        (("ProxyJump bastion",), True),
        (("ProxyJump Bastion",), True),
        (("ProxyJump {user}@bastion:22",), True),
        (("ProxyJump ssh://{user}@bastion:22",), True),
        (("ProxyJump bastion,bastion",), True),
        (("ProxyJump none", "ConnectTimeout 1"), False),
        (("ProxyJump no-such-user@bastion",), False),
        (("ProxyJump bastion:2222",), False),
        (("ProxyCommand ssh -F {config} -W %h:%p bastion",), True),
    ],
    ids=str,
)
def test_a_jump_host_is_used_as_by_ssh(
    settings: tuple[str, ...], way: bool, hosts: Hosts, account: Account
) -> None:
    values = {"user": account.name, "config": hosts.laptop.config}
    hosts.configure(account, *(line.format(**values) for line in settings))
    theirs, ours = hosts.laptop.theirs(), hosts.laptop.ours()
    assert (theirs is None, ours is None) == (way, way), f"ssh: {theirs}\njlr: {ours!r}"


def test_a_jump_hosts_own_jump_and_own_keys_are_used(hosts: Hosts, account: Account) -> None:
    """The config of the jump host decides how it is reached itself."""
    hosts.configure(account, "ProxyJump bastion", bastion=("ProxyJump outer",))
    address = hosts.network.bastion_address
    outer = f"Host outer\nHostName {address}\nIdentityFile {hosts.laptop.key}\n"
    config = hosts.laptop.config.read_text()
    hosts.laptop.config.write_text(outer + config)
    assert hosts.laptop.get_in()
    accepted = [line for line in logins(hosts.bastion) if "Accepted publickey" in line]
    assert len(accepted) == 4


def test_the_keys_of_one_host_are_not_offered_to_the_other(hosts: Hosts, account: Account) -> None:
    hosts.configure(account, "ProxyJump bastion")
    with hosts.laptop.connected():
        pass
    for server in (hosts.bastion, hosts.inner):
        assert not any("Failed" in line for line in logins(server))


def test_a_refusal_says_which_host_refused(hosts: Hosts, account: Account) -> None:
    hosts.configure(account, "ProxyJump bastion", bastion=("PubkeyAuthentication no",))
    error = hosts.laptop.ours()
    assert isinstance(error, Authentication)
    assert error.message.startswith("jump host: ")
    hosts.configure(account, "ProxyJump bastion", "PubkeyAuthentication no")
    error = hosts.laptop.ours()
    assert isinstance(error, Authentication)
    assert not error.message.startswith("jump host: ")


def test_a_bastion_without_forwarding_and_a_closed_port_are_different_errors(
    hosts: Hosts, account: Account
) -> None:
    hosts.configure(account, "ProxyJump bastion", "Port 2222")
    assert isinstance(hosts.laptop.ours(), ConnectionRefused)
    permitted = hosts.bastion.options
    hosts.bastion.options = ("AllowTcpForwarding no", *permitted)
    hosts.bastion.restart()
    hosts.configure(account, "ProxyJump bastion")
    error = hosts.laptop.ours()
    hosts.bastion.options = permitted
    hosts.bastion.restart()
    assert type(error) is Unreachable
    assert "does not permit" in error.message
    assert "AllowTcpForwarding" in str(error.hint)


def test_a_dead_bastion_ends_the_inner_connection_and_closing_ends_both(
    hosts: Hosts, account: Account
) -> None:
    hosts.configure(account, "ProxyJump bastion")
    with hosts.laptop.connected() as connection:
        assert connection.probe(5) < 5
        hosts.bastion.drop_connections()
        assert connection.wait_closed(5)
    with hosts.laptop.connected():
        assert hosts.bastion.sessions()
    wait_until(lambda: not hosts.bastion.sessions(), "the end of the bastion's connection")


def test_megabytes_pass_through_a_jump(hosts: Hosts, account: Account) -> None:
    hosts.configure(account, "ProxyJump bastion")
    received = bytearray()
    with hosts.laptop.connected() as connection:
        status = connection.execute(
            b"head -c 20000000 /dev/zero", lambda _stream, data: received.extend(data), timeout=60
        )
    assert (status, len(received)) == (0, 20_000_000)


def test_a_proxy_commands_death_ends_the_connection_without_a_spinning_thread(
    hosts: Hosts, account: Account
) -> None:
    command = f"ProxyCommand ssh -F {hosts.laptop.config} -W %h:%p bastion"
    hosts.configure(account, command)
    before = threading.active_count()
    with hosts.laptop.connected(person=Person()) as connection:
        hosts.bastion.drop_connections()
        assert connection.wait_closed(5)
        burnt = time.process_time()
        assert not threading.Event().wait(0.5)
        assert time.process_time() - burnt < 0.25
    wait_until(lambda: threading.active_count() <= before, "the end of the threads")
