"""The next connection ends the sshd of the last one, and no other process."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jlremote.link.connection.dialer import HostSide
from jlremote.ssh.interfaces import Output
from tests.link.fakes import FakeConnection, until


class Served(FakeConnection):
    """A connection whose scripts run in a session that a process of some name began."""

    def __init__(self, program: Path, between: str) -> None:
        super().__init__()
        self.gone.wait = lambda timeout=None: False  # type: ignore[method-assign]
        self.ran = False
        line = f'{between} setsid sh -c "$0"; echo; echo over; cat; :'
        words = (str(program), "-c", line)
        self.start: Callable[[str], subprocess.Popen[bytes]] = lambda script: subprocess.Popen(
            (*words, script), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def execute(self, script: bytes, output: Output, **options: Any) -> int:
        self.process = self.start(script.decode())
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline()) != b"over\n":
            output("stdout", line)
        self.ran = True
        return 0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def serve(name: str, between: str = "") -> Served:
        program = tmp_path / name
        if not program.exists():
            shutil.copy("/bin/sh", program)
        made.append(Served(program, between))
        return made[-1]

    yield serve
    for one in made:
        one.process.kill()
        one.process.communicate()


def test_only_the_sshd_of_the_last_connection_is_ended(served: Callable[..., Served]) -> None:
    first, other, second, third = (served("sshd-session") for _ in range(4))
    HostSide("elsewhere").renew(other)
    until(lambda: other.ran, "another link's connection")
    side = HostSide("dgx")
    side.renew(first)
    until(lambda: first.ran, "the first connection")
    assert first.process.poll() is None
    side.renew(second)
    until(lambda: second.ran, "the second connection")
    assert first.process.poll() is not None
    side.renew(third)
    until(lambda: third.ran, "the third connection")
    assert second.process.poll() is not None
    assert other.process.poll() is None


# Runs the rest as another server does that a person has started in a terminal over SSH.
BY_HAND = "python3 -c 'import subprocess, sys; subprocess.call(sys.argv[1:])'"


@pytest.mark.parametrize(("name", "between"), [("python3", ""), ("sshd", BY_HAND)])
def test_a_server_that_may_serve_others_too_stays(
    served: Callable[..., Served], name: str, between: str
) -> None:
    side = HostSide("dgx")
    first, second = served(name, between), served(name, between)
    for number, one in enumerate((first, second)):
        side.renew(one)
        until(lambda one=one: one.ran, f"connection {number}")  # type: ignore[misc]
    assert first.process.poll() is None
