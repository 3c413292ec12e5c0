"""The keys to offer, in the order of ssh, also of agents that refuse, hang and lie."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from jlremote.ssh.login import agent as agent_module
from jlremote.ssh.login.agent import Agent, UnusableKey
from jlremote.ssh.login.identities import load, public_half
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


def private(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
    ],
)
def test_a_broken_file_is_unusable_and_has_no_public_half(content: bytes, tmp_path: Path) -> None:
    path = private(tmp_path / "id", content)
    assert public_half(path) is None
    with pytest.raises(UnusableKey, match="is not a private key that can be read"):
        load(path, None)


def test_a_dsa_key_is_of_an_unsupported_kind(tmp_path: Path) -> None:
    key = dsa.generate_private_key(1024)
    content = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = private(tmp_path / "id", content)
    with pytest.raises(UnusableKey, match="unsupported kind"):
        load(path, None)
