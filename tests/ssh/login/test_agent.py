"""An ssh-agent's client, against agents that answer, refuse, hang and lie."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jlremote.ssh.login import agent as agent_module
from jlremote.ssh.login.agent import Agent, AgentFailure
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


def listing(*keys: tuple[bytes, bytes]) -> bytes:
    body = b"".join(string(blob) + string(comment) for blob, comment in keys)
    return string(bytes((12,)) + len(keys).to_bytes(4, "big") + body)


def test_the_keys_are_listed_with_their_comments(path: Path) -> None:
    requests = serve(path, lambda _: listing((b"blob", b"me@laptop"), (b"other", b"\xff")))
    assert Agent(str(path)).keys() == {b"blob": "me@laptop", b"other": "\ufffd"}
    assert requests == [bytes((11,))]


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


def test_a_missing_agent_has_no_keys(path: Path) -> None:
    assert Agent(str(path)).keys() == {}


def test_an_agent_that_hangs_has_no_keys(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "_LIST_SECONDS", 0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(path))
        silent.listen()
        assert Agent(str(path)).keys() == {}


@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        ("ssh-ed25519", 0),
        ("rsa-sha2-256", 2),
        ("rsa-sha2-512", 4),
        ("rsa-sha2-512-cert-v01@openssh.com", 4),
    ],
)
def test_a_signature_is_requested_with_the_hash_of_its_algorithm(
    algorithm: str, flags: int, path: Path
) -> None:
    requests = serve(path, lambda _: string(bytes((14,)) + string(b"signature")))
    assert Agent(str(path)).sign(b"blob", b"data", algorithm) == b"signature"
    assert requests == [bytes((13,)) + string(b"blob") + string(b"data") + flags.to_bytes(4, "big")]


def test_a_refused_signature_is_a_failure(path: Path) -> None:
    serve(path, lambda _: string(bytes((5,))))
    with pytest.raises(AgentFailure, match="refused"):
        Agent(str(path)).sign(b"blob", b"data", "ssh-ed25519")
    with pytest.raises(AgentFailure):
        Agent("no-such-socket").sign(b"blob", b"data", "ssh-ed25519")
