"""A full disk on the host is reported, and nothing half-made stays on it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.images.conftest import Layers
from tests.images.parts import Registry, log_in
from tests.lab.accounts import Account
from tests.lab.bridge import new_bridge
from tests.lab.engine import GROUP, Engine
from tests.lab.laptop import Laptop
from tests.lab.place import private_folder
from tests.lab.programs import run, wait_until
from tests.lab.remote_host import Keys, running_sshd
from tests.outages.parts import within


@pytest.fixture(scope="module")
def small_engine() -> Iterator[Engine]:
    """An engine on a disk of 48 megabytes that leaves the machine's firewall and bridge alone.

    The bridge is its own: told to have none, dockerd removes `docker0`, which is another engine's.
    """
    with private_folder("small") as folder, ExitStack() as stack:
        small = Engine(folder)
        (folder / "data").mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder / "data"))
        stack.callback(run, "umount", "--lazy", str(folder / "data"))
        bridge = stack.enter_context(new_bridge())
        argv = (
            *("setpriv", "--pdeathsig", "TERM", "dockerd", "--iptables=false"),
            f"--bridge={bridge}",
            *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
            *("--pidfile", str(folder / "dockerd.pid"), "--host", small.url, "--group", GROUP),
        )
        with small.log.open("wb") as log:
            process = subprocess.Popen(argv, stdout=log, stderr=log)
        stack.callback(process.wait, 20)
        stack.callback(process.terminate)
        wait_until(small.answers, "the start of the small engine")
        yield small


@pytest.fixture(scope="module")
def small(laptop: Laptop, small_engine: Engine, account: Account, keys: Keys) -> Iterator[Engine]:
    """The host `small`, whose engine that is."""
    with running_sshd(small_engine, keys, host_key_kinds=["ed25519"]) as server:
        laptop.add_host("small", server, account, key=keys.private)
        yield small_engine


def test_a_pull_that_does_not_fit_leaves_nothing(
    laptop: Laptop, small: Engine, registry: Registry, keychain: None, layers: Layers
) -> None:
    layers("me/large:1", 60_000_000)
    log_in(laptop, registry, host="small")
    with within(60):
        done = laptop.jlr("image", "pull", "small", f"{registry.name}/me/large:1", timeout=120)
    assert done.status == 1, done
    assert "no space is left on `small`: " in done.stderr
    assert "docker system df" in done.stderr
    assert small.docker("images", "--all", "--quiet") == ""


def test_a_build_that_does_not_fit_leaves_nothing(
    laptop: Laptop, small: Engine, folder: Path, name: str
) -> None:
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY big /\n")
    with (folder / "big").open("wb") as big:
        big.truncate(60_000_000)
    with within(60):
        done = laptop.jlr("image", "build", "small", str(folder), "-t", name, timeout=120)
    assert done.status == 1, done
    assert "no space is left on `small`: " in done.stderr
    assert small.docker("images", "--all", "--quiet") == ""
