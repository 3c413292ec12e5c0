"""Proxy commands of all kinds: real processes, no server."""

from __future__ import annotations

import socket

import pytest

from jlremote.errors import Unreachable
from jlremote.ssh.transport.server_socket import ProxyProcess
from tests.lab.programs import PATIENCE


def test_only_the_last_lines_of_much_output_are_kept() -> None:
    proxy = ProxyProcess("sh -c 'seq 20000 >&2'")
    proxy.socket.settimeout(PATIENCE)
    assert proxy.socket.recv(100) == b""
    assert proxy.complaint() == "19998 / 19999 / 20000"
    proxy.close()


@pytest.mark.lab  # it takes seconds
def test_a_command_that_ignores_its_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jlremote.ssh.transport.server_socket._END_SECONDS", 0.2)
    proxy = ProxyProcess("sh -c 'trap \"\" TERM; echo ready; while :; do sleep 0.05; done'")
    proxy.socket.settimeout(PATIENCE)
    assert proxy.socket.recv(10) == b"ready\n"
    proxy.close()
    assert proxy._process.returncode == -9


def test_a_command_that_hands_over_nothing_is_an_error() -> None:
    proxy = ProxyProcess("printf x")
    with pytest.raises(Unreachable, match="handed over no connection"):
        proxy.receive_descriptor(10)
    proxy.close()
    silent = ProxyProcess("sleep 10")
    with pytest.raises(TimeoutError):
        silent.receive_descriptor(0.05)
    silent.close()


def test_a_missing_shell_leaves_no_socket_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/no/such/shell")
    made: list[socket.socket] = []
    pair = socket.socketpair

    def remembered() -> tuple[socket.socket, socket.socket]:
        made.extend(pair())
        return made[0], made[1]

    monkeypatch.setattr(socket, "socketpair", remembered)
    with pytest.raises(OSError, match="/no/such/shell"):
        ProxyProcess("cat")
    assert [one.fileno() for one in made] == [-1, -1]
