"""The setting `forward-auto`: a session is followed in the background, without a terminal."""

from __future__ import annotations

import psutil
import pytest

from tests.jupyter.ports.conftest import JUPYTER_PORT
from tests.jupyter.ports.parts import end_inside, listed, only, serve_inside, told, word_at
from tests.lab.containers import Container
from tests.lab.laptop import Laptop, description
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.servers import start_inside

ALWAYS = "[defaults]\nforward-auto = true\n"


def followers(laptop: Laptop) -> list[psutil.Process]:
    return [each for each in laptop.processes() if "--auto" in description(each)]


def done(laptop: Laptop, *words: str) -> None:
    result = laptop.jlr(*words)
    assert result.status == 0, result


def until_forwarded(laptop: Laptop, word: str) -> int:
    """Return the local port at which a program says a word, once it is forwarded."""
    wait_until(lambda: [port for port in told(laptop) if port["state"] == "up"], "its forward")
    local: int = only(laptop)["local_port"]
    assert word_at(local) == word
    return local


@pytest.fixture
def followed(laptop: Laptop, inside: Container) -> Container:
    """A container with a session that is followed in the background."""
    laptop.settle(ALWAYS)
    done(laptop, "open", inside.name)
    return inside


def test_what_begins_to_listen_is_forwarded_and_opened_until_the_session_is_stopped(
    laptop: Laptop, followed: Container
) -> None:
    serve_inside(followed, "scalars", "127.0.0.1")
    until_forwarded(laptop, "scalars")
    wait_until(lambda: len(laptop.opened()) == 2, "its page, after Jupyter's")
    done(laptop, "start", "lab", followed.name, "--no-browser")
    wait_until(lambda: len(followers(laptop)) == 1, "the end of the second one")
    again = laptop.jlr("forward", "--auto", followed.name)
    assert again.status == 7
    assert "is followed already" in again.stderr
    end_inside(followed, "scalars")
    done(laptop, "stop", followed.name, "--container", "--yes")  # although its script runs there
    wait_until(lambda: not followers(laptop), "its end")
    assert len(laptop.opened()) == 2


def test_a_session_that_was_stopped_and_started_is_followed_by_one_again(
    laptop: Laptop, followed: Container
) -> None:
    serve_inside(followed, "second", "0.0.0.0", 7000)
    serve_inside(followed, "scalars", "127.0.0.1")
    wait_until(lambda: len(told(laptop)) == 2, "its forward")
    done(laptop, "stop", followed.name)
    assert told(laptop) == []
    start_inside(followed, JUPYTER_PORT)
    done(laptop, "start", "lab", followed.name)
    wait_until(lambda: [port["port"] for port in told(laptop)] == [6006, 7000], "both, again")
    wait_until(lambda: len(followers(laptop)) == 1, "one follower")
    end_inside(followed, "scalars")
    wait_until(lambda: [port["port"] for port in told(laptop)] == [7000], "the end of one")


def test_one_that_is_killed_leaves_its_ports_to_the_next(
    laptop: Laptop, followed: Container
) -> None:
    serve_inside(followed, "scalars", "127.0.0.1")
    local = until_forwarded(laptop, "scalars")
    [follower] = followers(laptop)
    follower.kill()
    follower.wait()
    assert word_at(local) == "scalars"
    done(laptop, "open", followed.name)
    wait_until(lambda: followers(laptop), "the next one")
    end_inside(followed, "scalars")
    wait_until(lambda: told(laptop) == [], "the end of its forward")


def test_a_disconnect_ends_it_and_so_does_the_setting_but_no_lost_connection(
    desk: Desk, laptop: Laptop, followed: Container, sshd: SSHServer
) -> None:
    [follower] = followers(laptop)
    sshd.stop()
    sshd.drop_connections()
    sshd.start()
    serve_inside(followed, "scalars", "127.0.0.1")
    until_forwarded(laptop, "scalars")
    assert followers(laptop) == [follower]
    done(laptop, "disconnect", "lab", "--yes")
    wait_until(lambda: not followers(laptop), "its end")
    assert desk.processes() == []
    done(laptop, "open", followed.name, "--no-browser")
    until_forwarded(laptop, "scalars")
    assert len(laptop.opened()) == 2
    laptop.settle("[defaults]\n")
    wait_until(lambda: not followers(laptop), "its end with the setting")
    assert told(laptop) == []
    assert 6006 in listed(laptop, followed.name)
