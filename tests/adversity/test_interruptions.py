"""A command that ends at a random moment leaves nothing that the next one trips over.

With `JLR_LONG=1` there are 123 interruptions of `jlr start`, and 25 kills of each kind.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress

import pytest

from jlremote.hosts.rollback import LEFT
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.ports import is_free
from tests.lab.programs import wait_until
from tests.link.desk import Desk, is_link
from tests.link.servers import HostServers
from tests.long import WANTED
from tests.outages.parts import within

pytestmark = pytest.mark.timeout(3600)

# Each part may be another worker's.
PARTS = range(3 if WANTED else 1)
INTERRUPTIONS = 41 if WANTED else 3
KILLS = 25 if WANTED else 2
# Of a start whose Jupyter never answers: the container's creation and launch are within these.
SECONDS = 4.0
ENDED = 60.0
# The whole time of a command that finds all that it needs.
SHORT_SECONDS = 1.0
NEXT = 15.0


def starting(laptop: Laptop, name: str) -> subprocess.Popen[str]:
    """Begin a start that would take minutes."""
    words = ("--image", "lab/slow", "--env", "LAB_DELAY=600", "--no-browser")
    return laptop.spawn("start", "lab", name, *words, forked=False)


def ended(command: subprocess.Popen[str]) -> str:
    """Wait for the end of a command that failed, in time, and return what it said."""
    said = command.communicate(timeout=ENDED)[0]
    assert command.returncode != 0, said
    assert command.returncode != 3, said
    return said


def check_that_nothing_is_left(
    laptop: Laptop, container: ContainerFactory, said: Mapping[str, str]
) -> None:
    """Check that there is no container, unless the command that made it `said` so."""
    left = {name: said[name] for name in container.remove_all()}
    assert not [words for words in left.items() if LEFT not in words[1]]
    assert laptop.jlr("list", "--json").stdout.strip() == "[]"


@pytest.mark.parametrize("part", PARTS)
def test_interruptions_of_a_start_at_any_moment_leave_nothing(
    laptop: Laptop, container: ContainerFactory, part: int
) -> None:
    said = {}
    for number in range(part * INTERRUPTIONS, (part + 1) * INTERRUPTIONS):
        with starting(laptop, name := container.name()) as command:
            time.sleep(random.Random(number).uniform(0, SECONDS))
            command.send_signal(signal.SIGINT)
            said[name] = ended(command)
    check_that_nothing_is_left(laptop, container, said)


def test_kills_of_the_link_at_any_moment_of_a_start_leave_nothing(
    laptop: Laptop, container: ContainerFactory
) -> None:
    """A start that goes on with another link is interrupted, for it would take minutes.

    On a slow machine that may come more than a second after the rollback began, and ends it.
    """
    said = {}
    for number in range(KILLS):
        with starting(laptop, name := container.name()) as command:
            wait_until(lambda: any(map(is_link, laptop.processes())), "the start of a link")
            time.sleep(random.Random(number).uniform(0, SECONDS))
            for link in filter(is_link, laptop.processes()):
                link.kill()
            with suppress(subprocess.TimeoutExpired):
                command.wait(2)
            command.send_signal(signal.SIGINT)
            said[name] = ended(command)
    check_that_nothing_is_left(laptop, container, said)


def killed(laptop: Laptop, number: int, *words: str) -> None:
    with laptop.spawn(*words, forked=False) as command:
        time.sleep(random.Random(number).uniform(0, SHORT_SECONDS))
        command.kill()


def test_starts_that_are_killed_at_any_moment_leave_the_server_to_the_next(
    desk: Desk, servers: HostServers
) -> None:
    pid = servers.start("one")
    words = ("start", "lab", "one", "--runtime", "none", "--no-browser")
    for number in range(KILLS):
        killed(desk.laptop, number, *words)
    with within(NEXT):
        assert desk.laptop.jlr(*words).status == 0
    assert desk.server_pid(desk.forward("one")) == pid


def test_stops_that_are_killed_at_any_moment_are_done_by_the_next(
    desk: Desk, servers: HostServers
) -> None:
    for number in range(KILLS):
        name = f"one{number}"
        pid = servers.start(name)
        desk.start(name)
        port = desk.forward(name).local_port
        killed(desk.laptop, number, "stop", f"lab/{name}")
        with within(NEXT):
            stopped = desk.laptop.jlr("stop", f"lab/{name}")
        assert stopped.status == 0, stopped
        assert pid not in [process.pid for process in servers.running("python3")]
        assert is_free(port)
