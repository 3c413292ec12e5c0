"""An engine that is missing, stopped or forbidden is told as such, each with its own advice."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import SSHServerFactory
from tests.doctor.parts import examined
from tests.lab.accounts import Account, logging_in_with
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys
from tests.outages.parts import within
from tests.sessions.parts import DOCKER, failed, start, without


def add_host(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys, setting: str
) -> None:
    """Make a host known as `odd`, whose sessions start with one variable set otherwise."""
    laptop.add_host("odd", another_sshd(f'SetEnv "{setting}"'), account, key=keys.private)


def test_an_engine_that_is_not_installed(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys, tmp_path: Path
) -> None:
    path = without(tmp_path, "docker")
    add_host(laptop, another_sshd, account, keys, f"PATH={path}")
    with logging_in_with(account, path):
        named = start(laptop, "odd", "cont1", *DOCKER)
        failed(named, 1, "`docker` was not found on the host", "--runtime none")
        file = laptop.settle('[hosts.odd]\nruntime = "docker"\n')
        chosen = f"; `runtime` of `[hosts.odd]` in `{file}` chooses it"
        failed(start(laptop, "odd", "cont1"), 1, "`docker` was not found on the host", chosen)
        images = laptop.jlr("image", "list", "odd")
        assert (images.status, chosen in images.stderr) == (1, True), images
        assert "chooses it" not in start(laptop, "odd", "cont1", *DOCKER).stderr
        assert "was not found" in examined(laptop, "odd").of("engine")["text"]


def test_an_engine_that_does_not_run(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys
) -> None:
    add_host(laptop, another_sshd, account, keys, "DOCKER_HOST=unix:///run/no-such-engine.sock")
    with within(15):
        answer = start(laptop, "odd", "cont1", *DOCKER)
    failed(answer, 1, "daemon does not run", "systemctl start docker")


def test_an_engine_that_the_user_may_not_use(
    laptop: Laptop,
    another_sshd: SSHServerFactory,
    account: Account,
    keys: Keys,
    forbidden_engine: str,
) -> None:
    add_host(laptop, another_sshd, account, keys, forbidden_engine)
    failed(start(laptop, "odd", "cont1", *DOCKER), 1, "may not use `docker`", "usermod -aG docker")
