"""Keys, agents and jump hosts: nothing is asked, and a lost connection comes back by itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.link.servers import HostServers
from tests.login.parts import (
    connections,
    listed,
    log_in,
    logins,
    start,
    started,
    wait_for_state,
)
from tests.outages.parts import within
from tests.sessions.parts import failed
from tests.ssh.servers import AgentProcess

_PIPE = Path(__file__).parents[1] / "ssh" / "proxy_program.py"


@pytest.fixture
def host(another_sshd: SSHServerFactory, session: HostServers) -> SSHServer:
    """A server of the test's own, with a log of its own."""
    return another_sshd()


def test_a_key_reconnects_silently(
    laptop: Laptop, host: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.add_host("keyed", host, account, key=keys.private)
    before = connections(host)
    started(laptop, "keyed")
    port = listed(laptop)["local_port"]
    for dropped in (1, 2):
        host.drop_connections()
        wait_until(lambda count=dropped: logins(host) == count + 1, "the link's coming back")  # type: ignore[misc]
        wait_for_state(laptop, "up")
        assert listed(laptop)["local_port"] == port
    assert connections(host) - before == 3


def test_another_command_brings_another_agent_when_the_first_one_has_died(
    laptop: Laptop, host: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.add_host("held", host, account, options=["PubkeyAuthentication yes"])
    config = laptop.ssh_config.read_text()
    laptop.ssh_config.write_text(
        config.replace("IdentitiesOnly yes", "IdentitiesOnly no").replace(
            "PubkeyAuthentication no", ""
        )
    )
    with AgentProcess(laptop.folder / "first.sock") as first:
        first.add(keys.private)
        laptop.environment["SSH_AUTH_SOCK"] = str(first.socket)
        started(laptop, "held")
    host.drop_connections()
    wait_for_state(laptop, "needs-auth")
    failed(start(laptop, "held"), 4, "cannot log in", "no key was found")
    with within(15), AgentProcess(laptop.folder / "second.sock") as second:
        second.add(keys.private)
        laptop.environment["SSH_AUTH_SOCK"] = str(second.socket)
        started(laptop, "held")
        host.drop_connections()
        wait_until(lambda: logins(host) == 3, "the link's coming back")
        wait_for_state(laptop, "up")


def test_the_agent_of_a_later_command_is_the_one_that_reconnects(
    laptop: Laptop, host: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.add_host("held", host, account, key=keys.private.with_suffix(".pub"))
    with AgentProcess(laptop.folder / "second.sock") as second:
        with AgentProcess(laptop.folder / "first.sock") as first:
            first.add(keys.private)
            laptop.environment["SSH_AUTH_SOCK"] = str(first.socket)
            started(laptop, "held")
            second.add(keys.private)
            laptop.environment["SSH_AUTH_SOCK"] = str(second.socket)
            started(laptop, "held")
        host.drop_connections()
        wait_until(lambda: logins(host) == 2, "the link's coming back")
        wait_for_state(laptop, "up")


def test_a_passphrase_is_asked_for_once_and_again_only_after_a_drop(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, session: HostServers
) -> None:
    key = laptop.make_key("encrypted", passphrase="right words")
    laptop.folder.chmod(0o755)  # the server reads the file as the user who logs in
    server = another_sshd(f"AuthorizedKeysFile {key}.pub")
    laptop.add_host("locked", server, account, key=key)
    failed(start(laptop, "locked"), 4, "a key's passphrase is needed", str(key))
    asked = ("passphrase of the key", "right words")
    log_in(laptop, "locked", asked)
    started(laptop, "locked")
    server.drop_connections()
    wait_for_state(laptop, "needs-auth")
    log_in(laptop, "locked", asked)
    wait_for_state(laptop, "up")


def test_a_session_behind_a_jump_host_comes_back_when_either_of_them_drops_it(
    laptop: Laptop,
    host: SSHServer,
    another_sshd: SSHServerFactory,
    account: Account,
    keys: Keys,
) -> None:
    bastion = another_sshd()
    laptop.add_host("bastion", bastion, account, key=keys.private)
    laptop.add_host("inner", host, account, key=keys.private, options=["ProxyJump bastion"])
    started(laptop, "inner")
    assert (logins(bastion), logins(host)) == (1, 1)
    for server, expected in ((host, (2, 2)), (bastion, (3, 3))):
        server.drop_connections()
        wait_until(
            lambda count=expected: (logins(bastion), logins(host)) == count,  # type: ignore[misc]
            "the link's coming back",
        )
        wait_for_state(laptop, "up")


def test_a_jump_host_that_asks_for_a_password_is_asked_about_by_its_name(
    laptop: Laptop, plain: SSHServer, host: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.add_host("inner", host, account, key=keys.private, options=["ProxyJump plain"])
    asked = f"password of {account.name}@[127.0.0.1]:{plain.port}:"
    log_in(laptop, "inner", (asked, "correct horse"))
    started(laptop, "inner")


def test_a_proxy_command_that_dies_is_started_again(
    laptop: Laptop, host: SSHServer, account: Account, keys: Keys
) -> None:
    command = f"ProxyCommand {sys.executable} {_PIPE} %h %p"
    laptop.add_host("piped", host, account, key=keys.private, options=[command])
    started(laptop, "piped")
    (pipe,) = [p for p in laptop.processes() if str(_PIPE) in p.cmdline()]
    pipe.kill()
    wait_until(lambda: logins(host) == 2, "the link's coming back")
    wait_for_state(laptop, "up")
