"""An ssh-agent's client, against agents that answer, refuse, hang and lie."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jlremote.ssh.login import agent as agent_module
from jlremote.ssh.login.agent import Agent
from jlremote.ssh.wire_format import string

Answer = Callable[[bytes], bytes]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # a socket's path has at most 108 bytes
    return Path("agent")


def serve(path: Path, answer: Answer) -> list[bytes]:
    """Answer one connection; return its requests."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    requests: list[bytes] = []

    def run() -> None:
        with listener, listener.accept()[0] as asked:
            size = int.from_bytes(asked.recv(4), "big")
            requests.append(asked.recv(size))
            asked.sendall(answer(requests[0]))

    threading.Thread(target=run, daemon=True).start()
    return requests


@pytest.mark.parametrize(
    "answer",
    [
        string(bytes((5,))),  # SSH_AGENT_FAILURE
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        string(bytes((12, 0, 0, 0, 9))),  # nine keys and none
        b"\0\0\0\x09\x0c",
    ],
)
def test_an_agent_that_refuses_or_lies_has_no_keys(answer: bytes, path: Path) -> None:
    serve(path, lambda _: answer)
    assert Agent(str(path)).keys() == {}


def test_an_agent_that_hangs_has_no_keys(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "_LIST_SECONDS", 0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(path))
        silent.listen()
        assert Agent(str(path)).keys() == {}
