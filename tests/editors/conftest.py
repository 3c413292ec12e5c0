"""One session of a laptop with ssh's configuration, for all clients."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys, new_laptop
from tests.lab.sshd import SSHServer
from tests.sessions.parts import started

SECONDS = 60


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a client that `Clients.popen` started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@dataclass(frozen=True)
class Clients:
    """Runs ssh clients of a laptop that know a session as `NAME.jlr`."""

    laptop: Laptop
    inside: Container
    config: Path

    @property
    def name(self) -> str:
        return f"{self.inside.name}.jlr"

    def ssh(self, *words: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
        return self.run("ssh", "-F", str(self.config), *words, **how)

    def popen(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ("ssh", "-F", str(self.config), *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.laptop.environment,
            start_new_session=True,  # with the `ssh` that it may start for a jump
        )

    def run(
        self,
        *argv: str,
        given: bytes = b"",
        timeout: float = SECONDS,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            argv,
            input=given,
            capture_output=True,
            env={**self.laptop.environment, **environment},
            cwd=self.laptop.folder / "home",
            timeout=timeout,
            check=False,
        )


@pytest.fixture(scope="package")
def clients(engine: Engine, sshd: SSHServer, account: Account, keys: Keys) -> Iterator[Clients]:
    """Clients of a session in a container with Python and without any SSH server."""
    factory = ContainerFactory(engine, f"lab-{secrets.token_hex(4)}-")
    inside = factory("lab/jupyter", options=("--workdir", "/srv", "--env", "OURS=here"))
    with new_laptop(sshd, account, keys) as laptop:
        started(laptop, inside)
        config = laptop.folder / "editors_config"
        block = laptop.jlr("config", "ssh")
        assert block.status == 0, block
        config.write_text(block.stdout, encoding="utf-8")
        yield Clients(laptop, inside, config)
    factory.remove_all()
