"""The setting `forward-auto`: a session is followed in the background, without a terminal."""

from __future__ import annotations

import pytest
from psutil import Process

from tests.jupyter.ports.conftest import JUPYTER_PORT
from tests.jupyter.ports.parts import end_inside, serve_inside, told, word_at
from tests.lab.containers import Container
from tests.lab.laptop import Laptop, description
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.servers import start_inside


def followers(laptop: Laptop) -> list[Process]:
    return [each for each in laptop.processes() if "--auto" in description(each)]


@pytest.fixture
def followed(laptop: Laptop, inside: Container) -> Container:
    """A session that is followed, and a program in it that is forwarded."""
    laptop.settle("[defaults]\nforward-auto = true\n")
    assert laptop.jlr("open", inside.name).status == 0
    serve_inside(inside, "scalars", "127.0.0.1")
    wait_until(lambda: len(laptop.opened()) == 2, "its page, after Jupyter's")
    return inside


def test_a_session_is_followed_by_one_until_it_is_stopped_also_if_that_was_killed(
    laptop: Laptop, followed: Container
) -> None:
    local = told(laptop)[0]["local_port"]
    assert laptop.jlr("forward", "--auto", followed.name).status == 7
    [killed] = followers(laptop)
    killed.kill()
    wait_until(lambda: not followers(laptop), "its end")
    assert word_at(local) == "scalars"
    assert laptop.jlr("open", followed.name).status == 0
    assert laptop.jlr("stop", followed.name).status == 0
    start_inside(followed, JUPYTER_PORT)
    assert laptop.jlr("start", "lab", followed.name, "--no-browser").status == 0
    wait_until(lambda: told(laptop), "its forward, again")
    end_inside(followed, "scalars")
    wait_until(lambda: told(laptop) == [], "the end of its forward")
    assert laptop.jlr("stop", followed.name, "--container", "--yes").status == 0
    wait_until(lambda: not followers(laptop), "the end of all")


def test_it_ends_with_a_disconnect_and_the_setting_but_not_with_a_lost_connection(
    desk: Desk, laptop: Laptop, followed: Container, sshd: SSHServer
) -> None:
    before = followers(laptop)
    sshd.drop_connections()
    serve_inside(followed, "second", "127.0.0.1", 7000)
    wait_until(lambda: len(told(laptop)) == 2, "what came meanwhile")
    assert followers(laptop) == before
    assert laptop.jlr("disconnect", "lab").status == 0
    wait_until(lambda: not followers(laptop) and not desk.processes(), "its end, and the link's")
    assert laptop.jlr("open", followed.name, "--no-browser").status == 0
    wait_until(lambda: len(told(laptop)) == 2, "both, again")
    laptop.settle("[defaults]\n")
    wait_until(lambda: not followers(laptop), "its end with the setting")
    assert told(laptop) == []
