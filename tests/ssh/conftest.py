"""Real servers for the SSH room; none of them needs a container engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lab.accounts import Account, claimed_account
from tests.lab.place import root
from tests.lab.sshd import ONLY_PASSWORD, SSHServer, make_key
from tests.ssh.laptop import Laptop
from tests.ssh.servers import AgentProcess

PASSWORD = "correct horse"  # of an account that is made for the tests

StartServer = Callable[..., SSHServer]


@pytest.fixture(scope="session")
def account() -> Iterator[Account]:
    """A user of the server, without an engine; overrides the lab's."""
    if os.geteuid() != 0 or shutil.which("sshd", path="/usr/sbin") is None:
        pytest.skip("real servers need root and sshd")
    with claimed_account() as claimed:
        claimed.set_password(PASSWORD)
        yield claimed


@pytest.fixture(scope="session")
def key_folder(account: Account) -> Iterator[Path]:
    """A folder that the server's user may pass through, and that StrictModes would trust."""
    folder = Path(tempfile.mkdtemp(dir=root(), prefix="ssh-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def laptop(key_folder: Path) -> Laptop:
    """A laptop without a config; overrides the lab's."""
    return Laptop(open_folder(key_folder))


@pytest.fixture
def start(laptop: Laptop) -> Iterator[StartServer]:
    """Start a server that lets the laptop's key in; its keys are known unless said otherwise."""
    with ExitStack() as running:

        def start_one(
            options: Sequence[str] = (),
            *,
            keys: Sequence[Path] = (),
            known: bool = True,
            host_key_kinds: Sequence[str] = ("ed25519",),
            port: int | None = None,
        ) -> SSHServer:
            server = SSHServer(
                laptop.authorize(*keys), options=options, host_key_kinds=host_key_kinds, port=port
            )
            running.enter_context(server)
            if known:
                laptop.knows(server)
            return server

        yield start_one


@pytest.fixture
def server(start: StartServer, laptop: Laptop, account: Account) -> SSHServer:
    """A plain server whose key is known, and a config that leads to it."""
    running = start()
    laptop.configure(running, account)
    return running


@pytest.fixture
def agent(laptop: Laptop) -> Iterator[AgentProcess]:
    """A real ssh-agent without keys, which both ways in find by SSH_AUTH_SOCK."""
    with AgentProcess(laptop.folder / "agent.sock") as running:
        laptop.environment["SSH_AUTH_SOCK"] = str(running.socket)
        yield running


@pytest.fixture(scope="module")
def shared_key(key_folder: Path) -> Path:
    """A key that the servers of `shared` let in."""
    return make_key(open_folder(key_folder) / "shared")


@pytest.fixture(scope="module")
def shared(shared_key: Path, key_folder: Path) -> Iterator[StartServer]:
    """Give one server for each set of options to all tests of a module: a start takes a second."""
    running: dict[tuple[str, ...], SSHServer] = {}
    starter = Laptop(open_folder(key_folder), shared_key)

    def give(options: Sequence[str] = ()) -> SSHServer:
        key = tuple(options)
        if key not in running:
            allowed = starter.authorize()
            pam = ONLY_PASSWORD if "UsePAM yes" in key else ()
            running[key] = SSHServer(allowed, options=key, host_key_kinds=["ed25519"], pam=pam)
            running[key].start()
        return running[key]

    yield give
    for server in running.values():
        server.remove()


@pytest.fixture
def guest(shared_key: Path, key_folder: Path) -> Laptop:
    """A laptop whose key the shared servers let in."""
    return Laptop(open_folder(key_folder), shared_key)


@pytest.fixture
def host(shared: StartServer, guest: Laptop, account: Account) -> SSHServer:
    """The module's plain server, known to `guest`, whose config leads to it."""
    running = shared()
    guest.knows(running)
    guest.configure(running, account)
    return running


def open_folder(parent: Path) -> Path:
    """Make a folder that the server's user may pass through."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    folder.chmod(0o755)
    return folder


def sign(authority: Path, public: Path, *options: str) -> Path:
    """Have an authority sign a public key; return the certificate's path."""
    subprocess.run(
        ("ssh-keygen", "-q", "-s", str(authority), "-I", "test", *options, str(public)), check=True
    )
    return public.with_name(f"{public.stem}-cert.pub")
