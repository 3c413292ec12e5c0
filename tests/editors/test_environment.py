"""Variables that a client sends, and another user of the host who reads all arguments there."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.terminal import Terminal
from tests.editors.conftest import SECONDS, Clients
from tests.long import LONG

# Collects the arguments of all processes until its stdin ends.
_WATCHER = """\
import os, select, sys
seen = set()
print(flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                seen.add(file.read())
        except OSError:
            pass
sys.stdout.buffer.write(b"\\n".join(seen))
"""
_STRANGER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it watches the host's processes")


@contextmanager
def arguments_seen() -> Iterator[list[bytes]]:
    """Give what another user has seen of the arguments of all processes, once this is left."""
    argv = (*_STRANGER, sys.executable, "-IS", "-c", _WATCHER)
    seen: list[bytes] = []
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watcher:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        try:
            yield seen
        finally:
            seen.append(watcher.communicate(timeout=SECONDS)[0])


@pytest.mark.parametrize("place", ["session", LONG("host")])
def test_no_variable_of_a_client_is_among_the_arguments_on_the_host(
    clients: Clients, place: str
) -> None:
    name = {"session": clients.name, "host": "lab.jlr"}[place]
    value, word = f"it's {secrets.token_hex(8)}", secrets.token_hex(8)
    sent = {"LC_SECRET": value, "GIT_PROTOCOL": f"{value}\n2"}
    data = b"first\n" * 50_000
    with arguments_seen() as seen:
        done = clients.ssh(
            *("-o", "SendEnv=LC_SECRET GIT_PROTOCOL", name),
            f'printf "%s|" {word} "$LC_SECRET" "$GIT_PROTOCOL"; cat',
            given=data,
            environment=sent,
        )
    assert done.stdout == f"{word}|{value}|{value}\n2|".encode() + data, done.stderr
    assert word.encode() in seen[0]
    assert value.encode() not in seen[0]


@pytest.mark.parametrize("place", ["session", LONG("host")])
def test_neither_is_one_of_a_client_with_a_terminal(clients: Clients, place: str) -> None:
    name = {"session": clients.name, "host": "lab.jlr"}[place]
    value, word = secrets.token_hex(8), secrets.token_hex(8)
    argv = ("ssh", "-F", str(clients.config), "-t", "-o", "SendEnv=LC_SECRET", name)
    environment = clients.laptop.environment | {"LC_SECRET": value, "TERM": "xterm-256color"}
    with arguments_seen() as seen:
        terminal = Terminal(
            (*argv, f"read line; echo {word}-$line-$LC_SECRET"), environment=environment
        )
        try:
            terminal.type("typed\r")
            terminal.wait_for(f"{word}-typed-{value}")
            assert value not in terminal.screen.split(f"{word}-typed-")[0]
        finally:
            terminal.close()
    assert word.encode() in seen[0]
    assert value.encode() not in seen[0]
