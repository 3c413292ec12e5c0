"""Every command that connects says so at once, also where the host stays silent."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Iterator

import pytest

from jlremote.cli.program import COMMANDS
from tests.lab.accounts import Account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.mounts.parts import remember_session

# Half a second is the promise; other work runs on the machine.
SECONDS = 3.0
WAITS = re.compile(r"^[A-Z][a-z]+ .* …\n", re.MULTILINE)
SESSION = "lab/cont1"
# Each command, as it needs the host.
CONNECTING = {
    "start": ("lab", "cont1", "--no-browser"),
    "open": (SESSION, "--no-browser"),
    "url": (SESSION,),
    "list": ("lab",),
    "status": (SESSION,),
    "logs": (SESSION,),
    "output": (SESSION,),
    "stop": (SESSION,),
    "renew": ("lab/work",),
    "restart": (SESSION,),
    "shell": (SESSION, "true"),
    "run": ("lab", "--runtime", "none", "--", "true"),
    "runs": ("lab",),
    "attach": ("lab/train",),
    "lab": (SESSION,),
    "kernels": ("install", SESSION),
    "forward": (SESSION, "6006"),
    "cp": ("/etc/hostname", "lab:"),
    "mount": ("here", "lab:/srv"),
    "code": (SESSION, "--print"),
    "images": ("lab",),
    "pull": ("lab", "torch"),
    "build": ("lab", "--on-host", "/srv", "-t", "me/torch"),
    "save": (SESSION, "me/torch"),
    "push": ("lab", "me/torch"),
    "rmi": ("lab", "me/torch", "--yes"),
    "prune": ("lab", "--yes"),
    "login": ("lab", "--password-stdin", "--keep"),
    "gpus": ("lab",),
    "doctor": ("lab",),
}
# `proxy` is ssh's: its stderr stands above what the person asked ssh for.
OTHERS = {
    *("unmount", "ssh-config", "proxy", "disconnect", "forget"),
    *("config", "notify", "demo", "completion"),
}


@pytest.fixture(scope="module")
def silent(engine: Engine, keys: Keys, account: Account) -> Iterator[Laptop]:
    """A laptop whose host accepts connections and says nothing."""
    with running_sshd(engine, keys) as server, new_laptop(server, account, keys) as laptop:
        remember_session(laptop, "cont1", "docker")
        remember_session(laptop, "work", "slurm")
        server.freeze()
        try:
            yield laptop
        finally:
            server.thaw_connections()


def first_words(laptop: Laptop, *words: str, seconds: float = SECONDS) -> str:
    """Return what a command says until it waits for the host, and stop it."""
    going = laptop.spawn(*words)
    assert going.stdout is not None
    began, said = time.monotonic(), ""
    while not WAITS.search(said) and (left := began + seconds - time.monotonic()) > 0:
        if select.select([going.stdout], [], [], left)[0]:
            said += os.read(going.stdout.fileno(), 4096).decode()
    going.kill()
    going.communicate(timeout=30)
    return said


@pytest.mark.parametrize("command", CONNECTING)
def test_a_command_says_at_once_that_it_connects(silent: Laptop, command: str) -> None:
    said = first_words(silent, command, *CONNECTING[command])
    assert WAITS.search(said), said


def test_a_quiet_command_says_nothing_meanwhile(silent: Laptop) -> None:
    assert first_words(silent, "url", SESSION, "--quiet", seconds=1) == ""


def test_each_command_connects_or_is_known_not_to() -> None:
    assert {*CONNECTING, *OTHERS} == {name for rows in COMMANDS.values() for name in rows}
