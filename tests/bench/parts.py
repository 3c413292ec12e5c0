"""The lab's parts, for a benchmark."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.lab import images
from tests.lab.accounts import Account, claimed_account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import running_engine
from tests.lab.remote_host import Keys, new_keys, running_sshd
from tests.lab.sshd import SSHServer


@dataclass(frozen=True)
class Lab:
    """The host, its user, the keys that it takes, and its containers."""

    sshd: SSHServer
    account: Account
    keys: Keys
    containers: ContainerFactory

    @property
    def host(self) -> tuple[SSHServer, Account, Keys]:
        """What a laptop knows a host by."""
        return self.sshd, self.account, self.keys


@contextmanager
def lab(names: tuple[str, ...] = images.NAMES) -> Iterator[Lab]:
    """Give all parts, with these images; containers are removed afterwards."""
    with (
        running_engine() as engine,
        claimed_account() as account,
        new_keys() as keys,
        running_sshd(engine, keys) as server,
    ):
        images.ensure(engine, print, names)
        containers = ContainerFactory(engine, f"bench-{secrets.token_hex(3)}-")
        try:
            yield Lab(server, account, keys, containers)
        finally:
            containers.remove_all()
