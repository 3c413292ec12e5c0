"""Logins as people have them: passwords and codes through PAM, agents, a keychain, a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.lab.accounts import Account, claimed_account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import private_folder
from tests.lab.remote_host import Keys, running_sshd
from tests.lab.sshd import INTERACTIVE, ONLY_PASSWORD, SSHServer, with_codes
from tests.link.servers import HostServers
from tests.login.keychain import SecretService
from tests.login.parts import PASSWORD, SESSION

_CODES = tuple(str(number) for number in range(10000000, 10000030))


@pytest.fixture(scope="session")
def account(engine: Engine) -> Iterator[Account]:
    """A user with a password; overrides the lab's."""
    with claimed_account() as claimed:
        claimed.set_password(PASSWORD)
        yield claimed


@pytest.fixture(scope="module")
def session(account: Account) -> Iterator[HostServers]:
    """The session that all tests of a file start: it runs on the host already."""
    servers = HostServers(account)
    servers.start(SESSION)
    yield servers
    servers.end()


@pytest.fixture(scope="session")
def interactive_server(keys: Keys, engine: Engine) -> Iterator[SSHServer]:
    """A server that asks for the password in its own words (keyboard-interactive)."""
    with running_sshd(engine, keys, *INTERACTIVE, pam=ONLY_PASSWORD) as server:
        yield server


@pytest.fixture(scope="session")
def password_server(keys: Keys, engine: Engine) -> Iterator[SSHServer]:
    """A server that takes a password (the method `password`)."""
    options = ("UsePAM yes", "PasswordAuthentication yes", "MaxAuthTries 6")
    with running_sshd(engine, keys, *options, pam=ONLY_PASSWORD) as server:
        yield server


@pytest.fixture(scope="session")
def code_server(keys: Keys, engine: Engine) -> Iterator[SSHServer]:
    """A server that asks for the password and then for a one-time code."""
    with (
        private_folder("codes") as folder,
        running_sshd(engine, keys, *INTERACTIVE, pam=with_codes(folder, _CODES)) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def codes() -> Iterator[str]:
    """The codes of `code_server`, each good once."""
    return iter(_CODES)


@pytest.fixture
def asking(
    laptop: Laptop, interactive_server: SSHServer, account: Account, session: HostServers
) -> SSHServer:
    """The host `asking`, which asks for the password in its own words."""
    laptop.add_host("asking", interactive_server, account)
    return interactive_server


@pytest.fixture
def plain(
    laptop: Laptop, password_server: SSHServer, account: Account, session: HostServers
) -> SSHServer:
    """The host `plain`, which takes a password."""
    laptop.add_host("plain", password_server, account)
    return password_server


@pytest.fixture
def two(
    laptop: Laptop, code_server: SSHServer, account: Account, session: HostServers
) -> SSHServer:
    """The host `two`, which wants two factors."""
    laptop.add_host("two", code_server, account)
    return code_server


@pytest.fixture
def keychain(laptop: Laptop) -> Iterator[SecretService]:
    """The laptop's own keychain, unlocked."""
    for program in ("dbus-daemon", "dbus-send", "gnome-keyring-daemon"):
        if shutil.which(program) is None:
            pytest.skip(f"`{program}` is not installed")
    with SecretService(laptop) as running:
        yield running
