"""A host that stops answering is told of within seconds, and waited for."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import load, wait_until
from tests.lab.remote_host import Keys, running_sshd
from tests.lab.sshd import SSHServer
from tests.long import LONG
from tests.outages.parts import within
from tests.sessions.parts import Session, started

TOLD = "`far` does not answer; still trying"
QUICK = ("ServerAliveInterval 1", "ServerAliveCountMax 2", "ConnectTimeout 2")


@pytest.fixture(scope="module")
def far(
    engine: Engine, keys: Keys, account: Account, file_laptop: Laptop
) -> Iterator[tuple[SSHServer, Session]]:
    """A host of its own, which may be frozen, with a session."""
    containers = ContainerFactory(engine, f"lab-silent-{account.name}-")
    with running_sshd(engine, keys) as server:
        file_laptop.add_host("far", server, account, key=keys.private)
        file_laptop.add_host("quick", server, account, key=keys.private, options=QUICK)
        yield server, started(file_laptop, containers(), host="far")
        file_laptop.shut_down()
    containers.remove_all()


def where(session: Session) -> dict[str, tuple[str, ...]]:
    return {
        "url": ("url", session.name),
        "open": ("open", session.name, "--no-browser"),
        "shell": ("shell", session.name, "--", "true"),
        "logs": ("logs", session.name),
        "stop": ("stop", session.name, "--yes"),
    }


@pytest.mark.parametrize("command", ["url", LONG("open"), LONG("shell"), LONG("logs"), "stop"])
def test_a_command_tells_that_the_host_does_not_answer_and_goes_on(
    far: tuple[SSHServer, Session], file_laptop: Laptop, command: str
) -> None:
    server, session = far
    server.freeze_connections()
    try:
        began = time.monotonic()
        going = file_laptop.spawn(*where(session)[command])
        assert going.stdout is not None
        said = ""
        while TOLD not in said and (line := going.stdout.readline()):
            said += line
        assert TOLD in said
        assert time.monotonic() - began < 3 * 2 * load()
    finally:
        server.thaw_connections()
    rest, _ = going.communicate(timeout=60)
    assert going.returncode == 0, said + rest
    assert TOLD not in rest


def test_a_list_tells_what_it_knows_of_a_host_that_does_not_answer(
    far: tuple[SSHServer, Session], file_laptop: Laptop
) -> None:
    server, session = far
    restarted = started(file_laptop, session.name, host="far")
    server.freeze_connections()
    try:
        for words in (("list", "--json"), ("list", session.name, "--json")):
            with within(8):
                listed = file_laptop.jlr(*words)
            assert listed.status == 0, listed
            found = json.loads(listed.stdout)
            (report,) = found if isinstance(found, list) else [found]
            assert report["state"] == "reconnecting"
            assert report["detail"] == "`far` does not answer"
            assert report["local_port"] == restarted.port
    finally:
        server.thaw_connections()
    wait_until(lambda: file_laptop.jlr("url", session.name).status == 0, "the answer")


@pytest.mark.parametrize(
    "words", [("url",), LONG(("shell", "--", "true")), LONG(("stop", "--yes"))], ids=str
)
def test_a_host_that_stays_silent_is_an_error_of_its_own(
    far: tuple[SSHServer, Session], file_laptop: Laptop, words: tuple[str, ...]
) -> None:
    """With short limits of the person's own; a request waits for the host for half a minute."""
    server, session = far
    quick = started(file_laptop, session.name, host="quick")
    server.freeze()
    try:
        failed = file_laptop.jlr(words[0], f"quick/{quick.name}", *words[1:])
    finally:
        server.thaw_connections()
    assert failed.status == 5, failed
    assert re.search("error: .*` (does not|did not) answer", failed.stderr), failed
    assert "programs in the terminal" not in failed.stderr
