"""After many drops the link is as small as it was, and no command leaves anything on the host."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from jlremote.errors import JlrError
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE, lives
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.fakes import until
from tests.link.servers import HostServers, name_of, start_inside
from tests.long import LONG, WANTED

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
    return [name_of(process) for process in account.processes() if lives(process)]


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


End = Callable[[subprocess.Popen[str], Desk, SSHServer], None]


ENDS: dict[str, End] = {
    "client killed": lambda command, _, __: command.kill(),
    "client interrupted": lambda command, _, __: command.terminate(),
    "link killed": lambda _, desk, __: desk.process().kill(),
    "laptop gone": lambda _, __, sshd: sshd.drop_connections(),
}


@contextmanager
def following(laptop: Laptop, name: str) -> Iterator[subprocess.Popen[str]]:
    """Run `jlr logs -f` and give it once it has shown the line `begun`."""
    command = laptop.spawn("logs", "-f", name)
    assert command.stdout is not None
    with command.stdout:
        assert command.stdout.readline() == "begun\n"
        yield command
        command.kill()
        command.wait()


@pytest.mark.parametrize(
    "end", ["client killed", LONG("client interrupted"), LONG("link killed"), "laptop gone"]
)
def test_a_log_that_is_followed_in_a_container_is_left_alone_there(
    desk: Desk, sshd: SSHServer, container: ContainerFactory, end: str
) -> None:
    inside = container("lab/plain")
    start_inside(inside, 8888)
    log = f"/tmp/jlr-0/{inside.name}/jupyter.log"
    inside.execute("sh", "-c", f"echo begun > {log}")
    desk.start(inside.name, "docker")
    before = set(processes_in(inside))  # the session's own watch may end
    with following(desk.laptop, inside.name) as command:
        assert any("tail" in line for line in processes_in(inside))
        inside.execute("sh", "-c", f"echo more >> {log}")
        assert command.stdout is not None
        assert command.stdout.readline() == "more\n"
        ENDS[end](command, desk, sshd)
        until(lambda: before.issuperset(processes_in(inside)), "the end of what followed")
        assert any("stand_in.py" in line for line in processes_in(inside))


def processes_in(container: Container) -> list[str]:
    lines = container.engine.docker("top", container.name, "-o", "pid,args").splitlines()[1:]
    return sorted(line.split(maxsplit=1)[1] for line in lines)


MEGABYTE = 1 << 20


def text(desk: Desk, script: str, given: list[bytes] | Iterator[bytes], *, end: bool) -> str:
    with desk.link().stream(script, given, end=end) as output:
        return "".join(output.text())


def test_the_shell_never_runs_stdin_as_its_script(desk: Desk) -> None:
    """dash reads its script by blocks, and what lies behind it would be swallowed."""
    given = [b"echo injected\n", b"exit 3\n"]
    read = 'IFS= read -r first; echo "[$first]"; cat'
    assert text(desk, read, given, end=True) == "[echo injected]\nexit 3\n"
    with desk.link().stream("echo mine", given) as output:
        assert "".join(output.text()) == "mine\n"
        assert output.status == 0, "what it leaves unread is not run"


def test_stdin_stays_open_after_the_pieces_unless_its_end_is_wanted(desk: Desk) -> None:
    script = "read -r word; echo $word; read -r more; echo hung up"
    with desk.link().stream(script, [b"one\n"]) as output:
        assert next(output.text()) == "one\n"
    assert text(desk, script, [b"one\n"], end=True) == "one\nhung up\n"


def test_an_error_while_making_a_piece_ends_the_script(desk: Desk) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"begun\n"
        raise JlrError("the file changed")

    with pytest.raises(JlrError, match="the file changed"):
        text(desk, "cat", pieces(), end=True)


def test_eighty_megabytes_pass_without_piling_up(desk: Desk) -> None:
    """The host is slower than the command: memory of neither process may grow with what waits."""
    desk.run("true")
    link, command = desk.process(), psutil.Process()
    before = link.memory_info().rss, command.memory_info().rss
    peaks = [0, 0]
    block = os.urandom(MEGABYTE // 4)

    def pieces() -> Iterator[bytes]:
        for _ in range(320):
            yield block
            peaks[:] = map(max, peaks, (link.memory_info().rss, command.memory_info().rss))

    expected = hashlib.sha256(block * 320).hexdigest()
    assert text(desk, "sleep 1; sha256sum", pieces(), end=True) == f"{expected}  -\n"
    grown = [peak - start for peak, start in zip(peaks, before, strict=True)]
    assert max(grown) < 40 * MEGABYTE, grown
