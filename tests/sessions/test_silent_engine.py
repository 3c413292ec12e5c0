"""An engine whose daemon hangs: it accepts connections and answers none."""

from __future__ import annotations

import secrets
import signal
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import psutil
import pytest

from tests.lab.accounts import Account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.programs import PATIENCE, load
from tests.lab.remote_host import Keys, running_sshd
from tests.long import LONG
from tests.mounts.parts import remember_session

# What was promised, and half as much again where the tests share two cores.
SECONDS = 15 * 1.5
NAME = "cont1"


@pytest.fixture(scope="module")
def laptop(file_laptop: Laptop) -> Laptop:
    return file_laptop


@pytest.fixture(scope="module")
def silent(laptop: Laptop, engine: Engine, account: Account, keys: Keys) -> Iterator[socket.socket]:
    """The socket at which nothing is accepted, of all engines of a host with a recorded session.

    The same host is known as `new`, too, without a session. A link to each runs, which had none to
    forward when it began.
    """
    place = account.home / f"silent-{secrets.token_hex(4)}.sock"
    engines = (f'"{name}=unix://{place}"' for name in ("DOCKER_HOST", "CONTAINER_HOST"))
    with (
        socket.socket(socket.AF_UNIX) as made,
        running_sshd(engine, keys, f"SetEnv {' '.join(engines)}") as sshd,
    ):
        made.bind(str(place))
        made.listen(100)
        place.chmod(0o777)
        for name in ("hung", "new"):
            laptop.add_host(name, sshd, account, key=keys.private)
            assert laptop.jlr("shell", name, "--", "true").status == 0
        remember_session(laptop, NAME, "docker", "hung", port=free_port(), forwarded=True)
        yield made
    place.unlink()


@pytest.mark.usefixtures("silent")
def test_a_daemon_that_hangs_is_told_in_time_by_each_command(laptop: Laptop) -> None:
    words = (("start", "hung", NAME), ("stop",), ("logs",), ("shell", NAME, "--", "true"))
    _all_say_so(laptop, *words, ("list", "new", "--all"), ("image", "list", "new"))


@pytest.mark.usefixtures("silent")
def test_docker_and_podman_that_both_hang_are_told_in_time(laptop: Laptop) -> None:
    words = (
        ("job", "list", "new"),
        ("run", "new", "--image", "lab/jupyter", "--", "true"),
        ("image", "pull", "new", "lab/jupyter"),
        ("shell", f"new/{NAME}", "--", "true"),
        ("start", "new", NAME, "--image", "lab/jupyter"),
        ("doctor", "new"),
    )
    _all_say_so(laptop, *words)


def _all_say_so(laptop: Laptop, *words: Sequence[str]) -> None:
    began = time.monotonic()
    commands = [laptop.spawn(*each) for each in words]
    for each, command in zip(words, commands, strict=True):
        output, _ = command.communicate(timeout=120)
        assert "`docker` on the host does not answer" in output, (each, output)
        assert command.returncode == 1, each
        assert time.monotonic() - began < SECONDS, each


def _asked_after(command: int, silent: socket.socket) -> socket.socket:
    """Return the first connection of a client that began later than a command of ours.

    Others are what tests have left.
    """
    since = psutil.Process(command).create_time()
    silent.settimeout(PATIENCE)
    while True:
        asking, _ = silent.accept()
        pid, _, _ = struct.unpack(
            "iii", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iii"))
        )
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).create_time() >= since:
                return asking
        asking.close()


@pytest.mark.parametrize("host", ["hung", LONG("new")])
def test_ctrl_c_ends_what_waits_for_a_daemon_that_hangs(
    silent: socket.socket, laptop: Laptop, host: str
) -> None:
    words = ("start", host, NAME) if host == "hung" else ("image", "list", host)
    with laptop.spawn(*words) as starting, _asked_after(starting.pid, silent):
        began = time.monotonic()
        starting.send_signal(signal.SIGINT)
        assert starting.wait(timeout=120) == 130
        assert time.monotonic() - began < 5 * load()
