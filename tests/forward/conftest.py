"""An sshd of these tests' own, and a forward through it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jlremote.ssh.forward.connection_router import WaitLimits
from jlremote.ssh.forward.forwarder import TunnelForward
from tests.forward.parts import Server, SwitchedGateway, echo, new_transport
from tests.lab.sshd import SSHServer, make_key


@pytest.fixture(scope="session")
def forward_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("key") / "id_ed25519")


@pytest.fixture(scope="session")
def forward_sshd(forward_key: Path) -> Iterator[SSHServer]:
    """An sshd that root may log in to; only root can start one that changes users."""
    if os.geteuid() != 0 or not Path("/usr/sbin/sshd").exists():
        pytest.skip("needs root and /usr/sbin/sshd")
    options = ("PermitRootLogin yes", "LogLevel ERROR")
    with SSHServer(forward_key.with_suffix(".pub"), options=options) as server:
        yield server


@pytest.fixture
def transport(forward_sshd: SSHServer, forward_key: Path) -> Iterator[Any]:
    connected = new_transport(forward_sshd, forward_key)
    yield connected
    connected.close()


@pytest.fixture
def gateway() -> SwitchedGateway:
    return SwitchedGateway()


@pytest.fixture
def forward(gateway: SwitchedGateway) -> Iterator[TunnelForward]:
    """A started forward on any port, which waits shorter than a real one."""
    started = TunnelForward(0, gateway, limits=WaitLimits(connection=3.0, page_load=0.5))
    started.start()
    yield started
    started.stop()


@pytest.fixture
def echo_server() -> Iterator[Server]:
    server = Server(echo)
    yield server
    server.close()
