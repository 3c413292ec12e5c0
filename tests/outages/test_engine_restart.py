"""The host's dockerd restarts: with live restore pages go on, without it the state tells.

Live restore is dockerd's own setting: its containers go on while it is away.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Iterator

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.lone_engine import LoneEngine, lone_engine
from tests.lab.place import Say
from tests.lab.ports import free_port
from tests.lab.remote_host import Keys, running_sshd
from tests.lab.sshd import SSHServer
from tests.link.fakes import until
from tests.long import WANTED
from tests.outages.conftest import QUICK
from tests.outages.parts import Work, state, work_in
from tests.sessions.parts import started

pytestmark = pytest.mark.timeout(600)

BACK = 2.0
KILLS = 10 if WANTED else 2


@pytest.fixture(scope="module")
def lone(engine: Engine, say: Say) -> Iterator[LoneEngine]:
    with lone_engine(engine, "lab/jupyter", say) as running:
        yield running


@pytest.fixture(scope="module")
def front_door(lone: LoneEngine, keys: Keys) -> Iterator[SSHServer]:
    with running_sshd(lone.engine, keys) as server:
        yield server


@pytest.fixture
def work(
    laptop: Laptop, lone: LoneEngine, front_door: SSHServer, account: Account, keys: Keys
) -> Iterator[Work]:
    """A kernel in a new container of that dockerd, which is alone on its network."""
    laptop.add_host("alone", front_door, account, key=keys.private, options=QUICK)
    factory = ContainerFactory(lone.engine, f"lone-{secrets.token_hex(4)}-")
    words = ("--image", "lab/jupyter", "--port", str(free_port()))
    with work_in(started(laptop, factory.name(), *words, host="alone")) as begun:
        yield begun
    factory.remove_all()


def test_a_restart_of_dockerd_that_keeps_its_containers(work: Work, lone: LoneEngine) -> None:
    lone.shut_down()
    work.check()  # it goes on while dockerd is away
    lone.start(live_restore=True)
    work.comes_back(BACK)


def test_a_connection_that_is_lost_while_dockerd_is_away(
    work: Work, lone: LoneEngine, front_door: SSHServer
) -> None:
    """Nothing can be proved without dockerd, so nothing is sent; then it goes on by itself."""
    lone.shut_down()
    front_door.drop_connections()
    until(lambda: state(work.session.laptop)[0] == "down", "the state")
    assert "docker" in state(work.session.laptop)[1].lower()
    lone.start(live_restore=True)
    work.comes_back(BACK + 2)


def test_a_restart_of_dockerd_that_ends_its_containers(work: Work, lone: LoneEngine) -> None:
    """What was in the kernel's memory is gone with it; the session comes back on its port."""
    born, laptop = work.session.born(), work.session.laptop
    work.kernel.keep_busy()
    lone.shut_down()
    lone.start(live_restore=False)  # ends the containers that it finds
    lone.shut_down()
    lone.start(live_restore=True)
    until(lambda: state(work.session.laptop)[0] == "container-stopped", "the state")
    assert "does not run" in state(work.session.laptop)[1]
    again = started(laptop, work.session.name, host="alone")
    assert again.port == work.session.port
    assert again.born() > born
    output = laptop.jlr("output", again.name, "--json")
    assert output.status == 1, output
    assert json.loads(output.stdout)[-1]["status"] == "gone"


def test_a_dockerd_that_is_killed_at_any_moment_of_a_start_is_told_and_the_next_start_works(
    laptop: Laptop, lone: LoneEngine, front_door: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.add_host("alone", front_door, account, key=keys.private)
    factory = ContainerFactory(lone.engine, f"lone-{secrets.token_hex(4)}-")
    words = ("--image", "lab/jupyter", "--runtime", "docker")
    for number in range(KILLS):
        with laptop.spawn("start", "alone", factory.name(), *words, "--no-browser") as starting:
            time.sleep(random.Random(number).uniform(0.5, 3))
            lone.kill()
            try:
                said = starting.communicate(timeout=60)[0]
            finally:
                lone.start(live_restore=True)  # which alone can end the containers
        assert starting.returncode in (0, 1), said
        assert (starting.returncode == 0) != ("docker" in said.partition("error: ")[2]), said
    assert started(laptop, factory.name(), *words, host="alone").ask("api/status")["kernels"] == 0
    factory.remove_all()
