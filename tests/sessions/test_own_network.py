"""A new session's container has a network of its own, which goes with it."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Iterator

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.lone_engine import lone_engine
from tests.lab.place import Say
from tests.lab.remote_host import Keys, running_sshd
from tests.sessions.parts import failed, start, started

IMAGE = ("--image", "lab/jupyter")


def networks(engine: Engine, name: str) -> list[str]:
    """Return the networks that jlr has made for a session."""
    label = f"--filter=label=org.jlremote.session={name}"
    return engine.docker("network", "ls", "--format={{.Name}}", label).split()


def test_a_network_is_made_with_the_container_and_removed_with_it(
    laptop: Laptop, engine: Engine, container: ContainerFactory, account: Account
) -> None:
    name = container.name()
    session = started(laptop, name, *IMAGE)
    [network] = networks(engine, name)
    assert network.startswith(f"jlr-{name}-")
    [facts] = json.loads(engine.docker("network", "inspect", network))
    assert [each["Name"] for each in facts["Containers"].values()] == [name]
    assert facts["Labels"]["org.jlremote.user"] == account.name
    assert facts["Options"]["com.docker.network.driver.mtu"] == "1500"
    assert session.ask("api/status")["started"]
    assert laptop.jlr("stop", name, "--container", "--yes").status == 0
    assert networks(engine, name) == [network], "it is needed for the next start"
    assert laptop.jlr("rm", name, "--yes").status == 0
    assert networks(engine, name) == []


@pytest.mark.long
def test_a_network_that_was_pruned_is_made_again(
    laptop: Laptop, engine: Engine, container: ContainerFactory
) -> None:
    name = container.name()
    started(laptop, name, *IMAGE)
    assert laptop.jlr("stop", name, "--container", "--yes").status == 0
    engine.docker("network", "rm", *networks(engine, name))  # as `docker network prune` does
    assert started(laptop, name).ask("api/status")["started"]
    assert len(networks(engine, name)) == 1


def test_a_start_that_fails_leaves_no_network(
    laptop: Laptop, engine: Engine, container: ContainerFactory
) -> None:
    name = container.name()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = (name, *IMAGE, "--", "--publish", f"127.0.0.1:{port}:80")
        failed(laptop.jlr("start", "lab", "--no-browser", *words, timeout=120), 7, "is in use")
    assert networks(engine, name) == []
    words = (name, *IMAGE, "--", "--cap-add", "NOSUCH")
    assert laptop.jlr("start", "lab", "--no-browser", *words, timeout=120).status != 0
    assert networks(engine, name) == []


def test_what_is_left_over_is_found_by_doctor_and_swept_by_prune(
    laptop: Laptop, engine: Engine, container: ContainerFactory
) -> None:
    left, kept = container.name(), container.name()
    for name in (left, kept):
        started(laptop, name, *IMAGE)
    assert laptop.jlr("stop", kept, "--container", "--yes").status == 0
    [network] = networks(engine, left)
    engine.docker("rm", "--force", left)
    told = laptop.jlr("doctor", "lab").stdout
    assert network in told
    assert "jlr image prune lab" in told
    assert networks(engine, kept)[0] not in told, "a container that has stopped needs it"
    pruned = laptop.jlr("image", "prune", "lab", "--yes")
    assert f"removed the network {network}" in pruned.stdout
    assert networks(engine, left) == []
    assert len(networks(engine, kept)) == 1
    assert "left over" not in laptop.jlr("doctor", "lab").stdout.replace("none is left over", "")


@pytest.fixture
def small(
    laptop: Laptop, engine: Engine, account: Account, keys: Keys, say: Say
) -> Iterator[Engine]:
    """The dockerd of the host `small`, which has room for one network."""
    pool = "--default-address-pool=base=198.18.255.0/29,size=29"
    with (
        lone_engine(engine, "lab/jupyter", say, pool) as running,
        running_sshd(running.engine, keys) as server,
    ):
        laptop.add_host("small", server, account, key=keys.private)
        yield running.engine


def test_without_room_for_a_network_the_default_one_is_used_and_told(
    laptop: Laptop, small: Engine
) -> None:
    factory = ContainerFactory(small, f"lone-{secrets.token_hex(4)}-")
    first, second = factory.name(), factory.name()
    started(laptop, first, *IMAGE, host="small")
    assert len(networks(small, first)) == 1
    told = start(laptop, "small", second, *IMAGE)
    assert told.status == 0, told
    assert f"`{second}` uses the shared default network" in told.stderr
    assert "jlr image prune small" in told.stderr
    assert networks(small, second) == []
    assert started(laptop, second, host="small").ask("api/status")["started"]
    small.docker("rm", "--force", first)  # which leaves its network
    third = factory.name()
    started(laptop, third, *IMAGE, host="small")
    assert (networks(small, first), len(networks(small, third))) == ([], 1)
    for name in (second, third):
        assert laptop.jlr("rm", f"small/{name}", "--yes").status == 0
