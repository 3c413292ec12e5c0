"""Ports of the lab: free, claimed by one process, and out of the way of connections."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.lab import ports
from tests.lab.place import LabError
from tests.rows import REPOSITORY


def test_a_port_can_be_listened_on_and_is_not_given_twice_in_a_row() -> None:
    given = [ports.free_port() for _ in range(10)]
    assert len(set(given)) == 10
    for port in given:
        socket.create_server(("127.0.0.1", port)).close()


def test_ports_are_below_those_of_outgoing_connections() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert ports.free_port() < lowest


def test_a_port_in_use_is_passed_over() -> None:
    following = ports.free_port() + ports.STEP
    with ExitStack() as held:
        with suppress(OSError):  # a server of another test has it: as good
            held.enter_context(socket.create_server(("127.0.0.1", following)))
        assert ports.free_port() != following


def test_without_a_free_port_the_error_names_the_block() -> None:
    def take_all(held: ExitStack) -> None:
        for _ in range(ports.BLOCK // ports.STEP + 1):
            held.enter_context(socket.create_server(("127.0.0.1", ports.free_port())))

    with ExitStack() as stack, pytest.raises(LabError, match="are in use"):
        take_all(stack)


def test_another_process_has_another_block() -> None:
    script = "from tests.lab.ports import free_port; print(free_port())"
    argv = (sys.executable, "-c", script)
    other = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert int(other.stdout) // ports.BLOCK != ports.free_port() // ports.BLOCK
