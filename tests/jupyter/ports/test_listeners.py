"""The listeners on one port, as the script prints them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from jlremote.errors import JlrError
from jlremote.jupyter.locate import probe, read_listening
from tests.place.host.parts import ANYWHERE, ANYWHERE_6, LOOPBACK, row


def printed(*rows: str, user: str = "1000", held: str = "") -> str:
    """Return what the script prints."""
    listening = "\n".join(rows)
    facts = {"user": user, "python": "/usr/bin/python3", "listening": listening, "held": held}
    return "".join(f"{name}\037{value}\036" for name, value in facts.items())


def test_the_nearest_listener_comes_first_and_ipv4_before_ipv6() -> None:
    found = read_listening(printed(row(ANYWHERE_6), row(ANYWHERE), row(LOOPBACK))).sockets
    assert [listener.address for listener in found] == ["127.0.0.1", "0.0.0.0", "::"]


@pytest.mark.parametrize("output", ["", "user\037root\036", "user\0371\036held\037\036"])
def test_output_that_makes_no_sense_is_reported(output: str) -> None:
    with pytest.raises(JlrError, match="cannot read what listens there"):
        read_listening(output)


@pytest.mark.skipif(sys.platform != "linux", reason="the script reads Linux's /proc")
def test_the_script_finds_a_socket_of_this_machine_with_its_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = probe(listener.getsockname()[1])
        told = read_listening(
            subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout
        )
    [found] = told.sockets
    assert (found.address, told.user) == ("127.0.0.1", os.getuid())
    assert found.inode in told.held
    again = read_listening(
        subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout
    )
    assert again.sockets == ()
