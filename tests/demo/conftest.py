"""A server of the demo's in this very process, and clients of other makes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
import pytest

from jlremote.demo.loopback_host import Account, configured_server
from tests.lab.programs import PATIENCE

EVERY_INTERFACE = "0.0.0.0"
"""Reaches this machine, and is no loopback address: it stands for a container's."""


@dataclass(frozen=True)
class Host:
    """The server as a client must know it."""

    port: int
    user: str
    config: Path
    folder: Path

    @property
    def key(self) -> paramiko.PKey:
        """The key that is let in."""
        return paramiko.Ed25519Key.from_private_key_file(str(self.config.parent / "id"))

    def transport(self) -> paramiko.Transport:
        """Return a connection that has not logged in, to a server that proved who it is."""
        transport = paramiko.Transport(("127.0.0.1", self.port))
        transport.start_client(timeout=PATIENCE)
        known = paramiko.HostKeys(str(self.config.parent / "known_hosts"))
        assert known.check(f"[127.0.0.1]:{self.port}", transport.get_remote_server_key())
        return transport


def login(folder: Path) -> Account:
    return Account("someone", "/bin/sh", folder, {"PATH": os.environ["PATH"], "MARK": "here"})


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A server that forwards to the loopback alone."""
    config, there = tmp_path / "keys" / "ssh_config", login(tmp_path)
    config.parent.mkdir()
    with configured_server("demo", config, there) as port:
        yield Host(port, there.user, config, tmp_path)


@pytest.fixture
def client(host: Host) -> Iterator[paramiko.Transport]:
    """A paramiko connection that is logged in."""
    transport = host.transport()
    transport.auth_publickey(host.user, host.key)
    yield transport
    transport.close()
