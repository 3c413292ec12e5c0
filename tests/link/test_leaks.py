"""After many drops the link is as small as it was."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from jlremote.errors import JlrError
from tests.lab.accounts import Account
from tests.lab.programs import PATIENCE
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.fakes import until
from tests.link.servers import HostServers, lives, name_of
from tests.long import WANTED

# A link that pauses a tenth as long: connections that are dropped as soon as they are there count
# as no failed attempts and as no flapping either. Nothing else is different.
BRISK_LINK = """
from jlremote.link.connection import backoff
from jlremote.link.service import link_process
backoff.FIRST_PAUSE /= 10
backoff.SHORTEST_PAUSE /= 10
backoff.STEADY_SECONDS = 0
link_process.main()
"""
DROPS = 200 if WANTED else 30
WARM_UP = 10
MEGABYTES = 8
REQUEST_SECONDS = 3.0
# A forward gives a connection up after 30 s that waits in vain for a far end.
SETTLE_SECONDS = 45.0


class Traffic:
    """Requests through a forward, one after the other, until told to stop."""

    def __init__(self, desk: Desk, name: str) -> None:
        self._desk = desk
        self._forward = desk.forward(name)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answers: list[int] = []
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            # A request that is under way when the line drops is lost, as anywhere.
            try:
                self.answers.append(self._desk.server_pid(self._forward, REQUEST_SECONDS))
            except JlrError:
                self._over.wait(0.02)

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


@contextmanager
def brisk_link(desk: Desk) -> Iterator[psutil.Process]:
    """Run the desk's link with shorter pauses."""
    argv = (sys.executable, "-c", BRISK_LINK, desk.host, str(desk.laptop.ssh_config))
    with psutil.Popen(argv, stdout=subprocess.PIPE, env=desk.laptop.environment) as link:
        assert link.stdout.readline() == b"ready\n"
        try:
            yield link
        finally:
            link.terminate()
            link.wait(PATIENCE)


def size(link: psutil.Process) -> tuple[int, int, int, float]:
    """Return threads, descriptors, children and megabytes."""
    children = len(link.children(recursive=True))
    return link.num_threads(), link.num_fds(), children, link.memory_info().rss / 2**20


def at_the_host(account: Account) -> list[str | None]:
    """Return the names of what runs at the host for the user: the server, and one connection."""
    return [name_of(process) for process in account.processes() if lives(process.pid)]


def drop(sshd: SSHServer, chance: random.Random) -> None:
    """Break every connection in one of the ways that a connection breaks."""
    sessions = sshd.sessions()
    if chance.random() < 0.5:
        sessions = sessions[-1:]  # the user's half: the other one says goodbye properly
    for session in sessions:
        with suppress(psutil.NoSuchProcess):
            session.kill()


@pytest.mark.timeout(240)
def test_drops_under_traffic_leave_nothing_behind(
    desk: Desk, servers: HostServers, sshd: SSHServer, account: Account
) -> None:
    chance = random.Random(4)
    pid = servers.start("one")
    with brisk_link(desk) as link:
        desk.start("one")
        there = len(at_the_host(account))
        with Traffic(desk, "one") as traffic:
            before = size(link)
            for number in range(DROPS):
                answered = len(traffic.answers)
                until(
                    lambda seen=answered: len(traffic.answers) > seen,  # type: ignore[misc]
                    f"an answer after drop {number}",
                )
                if number == WARM_UP:
                    before = size(link)
                drop(sshd, chance)
        assert set(traffic.answers) == {pid}
        assert desk.run("echo well") == "well\n"
        until(lambda: size(link)[:2] <= before[:2], "threads and descriptors", SETTLE_SECONDS)
        left = f"the end of what is left at the host: {at_the_host(account)}"
        until(lambda: len(at_the_host(account)) <= there, left, SETTLE_SECONDS)
        *handles, children, megabytes = size(link)
        assert all(now <= then for now, then in zip(handles, before, strict=False))
        assert children == 0
        assert megabytes <= before[3] + MEGABYTES
