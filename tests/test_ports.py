"""Ports of the lab: free, claimed by one process, and out of the way of connections."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack, suppress

from tests.lab import ports
from tests.rows import REPOSITORY


def test_a_port_can_be_listened_on_and_is_not_given_twice_in_a_row() -> None:
    given = [ports.free_port() for _ in range(10)]
    assert len(set(given)) == 10
    for port in given:
        socket.create_server(("127.0.0.1", port)).close()


def test_a_port_in_use_is_passed_over() -> None:
    following = ports.free_port() + ports.STEP
    with ExitStack() as held:
        with suppress(OSError):  # a server of another test has it: as good
            held.enter_context(socket.create_server(("127.0.0.1", following)))
        assert ports.free_port() != following


def test_another_process_has_another_block() -> None:
    script = "from tests.lab.ports import free_port; print(free_port())"
    argv = (sys.executable, "-c", script)
    other = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert int(other.stdout) // ports.BLOCK != ports.free_port() // ports.BLOCK
