"""At once a command says that it connects, or what cannot be: here the host stays silent."""

from __future__ import annotations

import os
import re
import select
import socket
import time
from collections.abc import Iterator

import pytest

from tests.cli.tree import COMMANDS
from tests.lab.accounts import Account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.long import LONG
from tests.mounts.parts import remember_session

# Half a second is the promise; other work runs on the machine.
SECONDS = 10.0
WAITS = re.compile(r"^[A-Z][a-z]+ .* …\n", re.MULTILINE)
SESSION = "lab/cont1"
# Each command, as it needs the host.
CONNECTING = {
    "start": ("lab", "cont1", "--no-browser"),
    "open": (SESSION, "--no-browser"),
    "url": (SESSION,),
    "list": ("lab",),
    "logs": (SESSION,),
    "output": (SESSION,),
    "stop": (SESSION,),
    "restart": (SESSION,),
    "rm": (SESSION, "--yes"),
    "shell": (SESSION, "true"),
    "run": ("lab", "--runtime", "none", "--", "true"),
    "exec": (SESSION, "-c", "1"),
    "cp": ("/etc/hostname", "lab:"),
    "sync": ("folder", "lab:/srv/work"),
    "mount": ("here", "lab:/srv"),
    "forward": (SESSION, "6006"),
    "code": (SESSION, "--print"),
    "gpus": ("lab",),
    "doctor": ("lab",),
    "job list": ("lab",),
    "job logs": ("lab/train",),
    "job attach": ("lab/train",),
    "wait": ("lab/train",),
    "job stop": ("lab/train",),
    "job rm": ("lab/train",),
    "image list": ("lab",),
    "image pull": ("lab", "torch"),
    "image build": ("lab", "--on-host", "/srv", "-t", "me/torch"),
    "image save": (SESSION, "me/torch"),
    "image push": ("lab", "me/torch"),
    "image rm": ("lab", "me/torch", "--yes"),
    "image prune": ("lab", "--yes"),
    "image login": ("lab", "--password-stdin", "--keep"),
    "local lab": (SESSION,),
    "local kernels": ("install", SESSION),
}
# `proxy` is ssh's: its stderr stands above what the person asked ssh for.
OTHERS = {
    *("disconnect", "config show", "config set", "config notify", "config ssh"),
    *("agent install", "mcp", "demo", "completion", "proxy"),
}
# They connect in the same way as another one of these.
ALIKE = {
    *("url", "logs", "output", "restart", "rm", "forward", "code", "local lab", "exec", "sync"),
    *("job attach", "wait", "job stop", "job rm", "image save", "image push"),
    *("image rm", "image prune", "image login"),
}
NEW = ("start", "lab", "cont2", "--image", "torch")
JOB = ("run", "lab", "--image", "torch")
# What this machine can refuse without the host, and what the error names.
REFUSED = [
    ((*NEW, "-v", "data/x:/x"), 2, "`--volume` cannot be `data/x:/x`"),
    ((*NEW, "-v", "/data:x"), 2, "`--volume` cannot be `/data:x`"),
    ((*JOB, "-v", "/data:x", "--", "true"), 2, "`--volume` cannot be `/data:x`"),
    ((*NEW, "--workdir", "work"), 2, "`--workdir work`"),
    ((*NEW, "--shm-size", "much"), 2, "`--shm-size` cannot be `much`"),
    ((*NEW, "--ulimit", "memlock"), 2, "`--ulimit` cannot be `memlock`"),
    ((*NEW, "--user", "a b"), 2, "`--user` cannot be `a b`"),
    ((*NEW, "--ipc", "a b"), 2, "`--ipc` cannot be `a b`"),
    ((*NEW, "--network", "a b"), 2, "`--network` cannot be `a b`"),
    ((*NEW, "--log-opt", "max-size"), 2, "`--log-opt` cannot be `max-size`"),
    ((*NEW, "--env-file", "missing"), 2, "`missing` does not exist"),
    ((*NEW, "--env", "A B=1"), 2, "`A B` is not the name of a variable"),
    ((*NEW, "--gpus", "some"), 2, "`some` is not a GPU selection"),
    ((*NEW, "--idle-stop", "late"), 2, "`late` is not a span of time"),
    ((*NEW, "--wait=long"), 2, "`long` is not a span of time"),
    ((*NEW, "--browser", "no-browser"), 1, "no browser `no-browser`"),
    ((*NEW, "--port", "TAKEN"), 7, "port TAKEN"),
    (("start", "lab", "c!", "--image", "torch"), 2, "`c!`"),
    (("start", "lab", "cont2", "--image", "Torch"), 2, "`Torch`"),
    (("run", "lab", "--image", "Torch", "--", "true"), 2, "`Torch`"),
    ((*JOB, "--name", "b!", "--", "true"), 2, "`b!`"),
    (("run", "lab", "--runtime", "none", "nb.txt"), 2, "`nb.txt` is not a notebook"),
    (("open", SESSION, "--browser", "no-browser"), 1, "no browser `no-browser`"),
    (("cp", "missing", "lab:"), 6, "no file `missing`"),
    (("cp", "folder", "lab:"), 2, "`folder` is a folder"),
    (("cp", "lab:x", "missing/y"), 6, "no folder `missing`"),
    (("mount", "folder", "lab:/srv"), 2, "is not empty"),
    (("mount", "file", "lab:/srv"), 2, "is a file"),
    (("forward", "lab/up", "TAKEN:6006"), 7, "port TAKEN"),
    (("image", "pull", "lab", "Torch"), 2, "`Torch`"),
    (("image", "push", "lab", "Torch"), 2, "`Torch`"),
    (("image", "save", SESSION, "Torch"), 2, "`Torch`"),
    (("image", "build", "lab", "missing", "-t", "x"), 6, "no folder `missing`"),
    (("image", "build", "lab", "folder", "-t", "x"), 6, "no `Dockerfile`"),
    (("image", "build", "lab", "folder", "-f", "missing", "-t", "x"), 6, "no `missing`"),
    (("image", "build", "lab", "folder", "-f", "file", "-t", "Torch"), 2, "`Torch`"),
    (("image", "login", "lab", "a b"), 2, "`a b` is not a registry"),
    (("output", SESSION, "nb.ipynb", "--save", "file"), 2, "`file` exists"),
    (("logs", SESSION, "--since", "soon"), 2, "`soon`"),
]


@pytest.fixture(scope="module")
def silent(engine: Engine, keys: Keys, account: Account) -> Iterator[Laptop]:
    """A laptop whose host accepts connections and says nothing."""
    with running_sshd(engine, keys) as server, new_laptop(server, account, keys) as laptop:
        remember_session(laptop, "cont1", "docker")
        remember_session(laptop, "up", "docker", forwarded=True)
        home = laptop.folder / "home"
        (home / "folder").mkdir()
        for name in ("file", "folder/file"):
            (home / name).touch()
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
    going.communicate(timeout=PATIENCE)
    return said


@pytest.mark.parametrize("command", [LONG(one) if one in ALIKE else one for one in CONNECTING])
def test_a_command_says_at_once_that_it_connects(silent: Laptop, command: str) -> None:
    said = first_words(silent, *command.split(), *CONNECTING[command])
    assert WAITS.search(said), said


def test_a_quiet_command_says_nothing_meanwhile(silent: Laptop) -> None:
    assert first_words(silent, "url", SESSION, "--quiet", seconds=1) == ""


@pytest.fixture(scope="module")
def taken() -> Iterator[str]:
    """A port of this machine on which a program listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


@pytest.mark.parametrize(("words", "status", "named"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_this_machine_can_refuse_the_host_is_not_asked_for(
    silent: Laptop, taken: str, words: tuple[str, ...], status: int, named: str
) -> None:
    refused = silent.jlr(*(word.replace("TAKEN", taken) for word in words), timeout=PATIENCE)
    assert refused.status == status, refused
    assert named.replace("TAKEN", taken) in refused.stderr
    assert "Connect" not in refused.stderr


def test_each_command_connects_or_is_known_not_to() -> None:
    assert {*CONNECTING, *OTHERS} == set(COMMANDS)
