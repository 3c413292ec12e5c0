"""Stdin and stdout past the engine: the container's own address is connected to."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest

from tests.editors.conftest import SECONDS, Clients
from tests.lab.laptop import PROGRAMS
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.shell.parts import running

# Tells how many of its parent's sockets are connected, and what it has read, and prints that.
LOOK = """\
import hashlib, os, sys
data = sys.stdin.buffer.read()
folder = f"/proc/{os.getppid()}/fd"
held = {os.readlink(f"{folder}/{one}") for one in os.listdir(folder)}
rows = [line.split() for line in open("/proc/net/tcp")][1:]
connected = [row for row in rows if f"socket:[{row[9]}]" in held and row[3] in ("01", "08")]
sys.stderr.write(f"{len(connected)} {hashlib.sha256(data).hexdigest()}")
sys.stdout.buffer.write(data)
sys.exit(9)
"""
# Kills the other half, which has `sleep 632` in an argument of Python's, and then the command.
KILL = """\
import os, pathlib, signal
found = []
for one in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        words = (one / "cmdline").read_bytes().split(b"\\0")
    except OSError:
        continue
    if b"sleep " + b"632" in b" ".join(words) and int(one.name) != os.getpid():
        found.append((words[0] == b"sleep", int(one.name)))
for _, pid in sorted(found):
    os.kill(pid, signal.SIGKILL)
"""


def given(clients: Clients, way: str) -> tuple[str, ...]:
    """Return the command line that runs a program which is given on the command line."""
    if way == "ssh":
        return ("ssh", "-F", str(clients.config), clients.name, f"exec python3 -c '{LOOK}'")
    return (str(PROGRAMS / "jlr"), "shell", clients.inside.name, "--", "python3", "-c", LOOK)


@pytest.mark.parametrize("way", ["ssh", "jlr shell"])
def test_many_bytes_go_both_ways_past_the_engine(either: Clients, way: str) -> None:
    data = os.urandom(30_000_001)
    done = either.run(*given(either, way), given=data)
    assert done.stderr.decode() == f"1 {hashlib.sha256(data).hexdigest()}"
    assert (done.returncode, done.stdout == data) == (9, True)


def test_a_lost_connection_ends_the_input_of_the_command_there(
    either: Clients, sshd: SSHServer
) -> None:
    begin = "head -c 30000000 /dev/zero; cat >/dev/null; : 631"
    lost = either.popen(either.name, begin)
    assert lost.stdout is not None
    assert len(lost.stdout.read(30_000_000)) == 30_000_000
    sshd.drop_connections()
    told, _ = lost.communicate(timeout=SECONDS)
    assert (lost.returncode, told[:27]) == (255, b"jlr: the connection broke wh"[:27])
    wait_until(lambda: not running(either.inside, ": 631"), "its end there", SECONDS)


def test_a_command_that_is_killed_with_its_other_half_is_told(clients: Clients) -> None:
    """As when the container is stopped: nothing there can say how it ended."""
    many = clients.popen(clients.name, "head -c 30000000 /dev/zero; exec sleep 632")
    assert many.stdout is not None
    assert len(many.stdout.read(30_000_000)) == 30_000_000
    # While a process begins another program its command line is empty.
    sleeping = r"^\s*\d+\s+sleep 632$"
    wait_until(lambda: running(clients.inside, sleeping), "the program", SECONDS)
    clients.inside.execute("python3", "-c", KILL)
    many.communicate(timeout=SECONDS)
    assert many.returncode == 137
    wait_until(lambda: not running(clients.inside, "sleep 632"), "its end there", SECONDS)


def test_a_reader_that_leaves_ends_the_command(either: Clients) -> None:
    argv = ("ssh", "-F", str(either.config), either.name, "yes 633")
    line = " ".join(f"'{word}'" for word in argv)
    read = subprocess.run(
        ("sh", "-c", f"{line} | head -c 9000000 | wc -c"),
        env=either.laptop.environment, capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    assert read.stdout.strip() == "9000000"
    wait_until(lambda: not running(either.inside, "yes 633"), "its end there", SECONDS)
