"""Containers and servers that leave jlr less: no log, no terminal, other users."""

from __future__ import annotations

from collections.abc import Iterator

import pexpect
import pytest

from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.sessions.parts import started


@pytest.fixture
def name(container: ContainerFactory) -> Iterator[str]:
    made = container.name()
    yield made
    container.engine.try_docker("rm", "--force", made)


def test_a_container_that_ends_again_and_again_is_told_as_that(
    laptop: Laptop, container: ContainerFactory, name: str
) -> None:
    docker = container.engine.docker
    command = ("sh", "-c", "echo bad config; exit 3")
    docker("run", "--detach", "--restart=always", "--name", name, "lab/jupyter", *command)
    count = ("inspect", name, "--format={{.RestartCount}}")
    wait_until(lambda: int(docker(*count)) > 1, "some restarts")
    done = laptop.jlr("start", "lab", name, "--no-browser")
    # The engine calls it running for a moment after each of its starts.
    restarts = ("its engine is restarting it: it has ended ", "its engine has restarted it ")
    assert done.status in (1, 6, 7), done
    assert any(words in done.stderr for words in restarts), done
    assert f"docker logs {name}" in done.stderr or "--container" in done.stderr, done


def test_a_server_that_gives_no_terminal_is_told_before_the_engine_complains(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys, name: str
) -> None:
    started(laptop, name, "--image", "lab/jupyter")
    laptop.add_host("odd", another_sshd("PermitTTY no"), account, key=keys.private)
    with laptop.terminal("jlr", "shell", f"odd/{name}", "--", "tty") as terminal:
        terminal.expect_exact("the SSH server gives no terminal (`PermitTTY no`)")
        terminal.expect(pexpect.EOF)
    without = laptop.jlr("shell", f"odd/{name}", "--", "echo", "works", stdin="")
    assert (without.status, without.stdout) == (0, "works\n"), without
    assert laptop.jlr("rm", f"lab/{name}", "--force", "--yes").status == 0
