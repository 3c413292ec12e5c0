"""However a followed command ends, nothing of it stays behind on the host."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.fakes import until
from tests.link.servers import start_inside
from tests.long import LONG

End = Callable[[subprocess.Popen[str], Desk, SSHServer], None]


def client_killed(command: subprocess.Popen[str], desk: Desk, sshd: SSHServer) -> None:
    command.kill()


def client_interrupted(command: subprocess.Popen[str], desk: Desk, sshd: SSHServer) -> None:
    command.terminate()


def link_killed(command: subprocess.Popen[str], desk: Desk, sshd: SSHServer) -> None:
    desk.process().kill()


def laptop_gone(command: subprocess.Popen[str], desk: Desk, sshd: SSHServer) -> None:
    sshd.drop_connections()


ENDS = pytest.mark.parametrize(
    "end", [client_killed, LONG(client_interrupted), LONG(link_killed), laptop_gone]
)


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


@ENDS
def test_a_log_that_is_followed_in_a_container_is_left_alone_there(
    desk: Desk, sshd: SSHServer, container: ContainerFactory, end: End
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
        end(command, desk, sshd)
        until(lambda: before.issuperset(processes_in(inside)), "the end of what followed")
        assert any("stand_in.py" in line for line in processes_in(inside))


def processes_in(container: Container) -> list[str]:
    """Return the command lines of a container's processes."""
    lines = container.engine.docker("top", container.name, "-o", "pid,args").splitlines()[1:]
    return sorted(line.split(maxsplit=1)[1] for line in lines)
