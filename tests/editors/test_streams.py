"""Many bytes on stdin and stdout of a command, and their end."""

from __future__ import annotations

import subprocess

from tests.editors.conftest import SECONDS, Clients
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.shell.parts import running


def test_a_lost_connection_ends_the_input_of_the_command_there(
    clients: Clients, sshd: SSHServer
) -> None:
    begin = "head -c 30000000 /dev/zero; cat >/dev/null; : 631"
    lost = clients.popen(clients.name, begin)
    assert lost.stdout is not None
    assert len(lost.stdout.read(30_000_000)) == 30_000_000
    sshd.drop_connections()
    told, _ = lost.communicate(timeout=SECONDS)
    assert (lost.returncode, told[:27]) == (255, b"jlr: the connection broke wh"[:27])
    wait_until(lambda: not running(clients.inside, ": 631"), "its end there", SECONDS)


def test_a_reader_that_leaves_ends_the_command(clients: Clients) -> None:
    argv = ("ssh", "-F", str(clients.config), clients.name, "yes 633")
    line = " ".join(f"'{word}'" for word in argv)
    read = subprocess.run(
        ("sh", "-c", f"{line} | head -c 9000000 | wc -c"),
        env=clients.laptop.environment, capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    assert read.stdout.strip() == "9000000"
    wait_until(lambda: not running(clients.inside, "yes 633"), "its end there", SECONDS)
