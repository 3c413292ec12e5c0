"""The socket of a link: its file, the proof of each side by a secret, and messages in JSON."""

from __future__ import annotations

import multiprocessing.connection as sockets
import os
from multiprocessing import Pipe
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import (
    MESSAGE_BYTES,
    NotProved,
    authenticate_command,
    authenticate_link,
    bytes_of,
    pipe_name,
    receive,
    send,
    text_of,
)
from tests.link.fakes import Call, own_folders


@given(st.binary())
def test_bytes_of_any_encoding_survive_as_text(data: bytes) -> None:
    here, there = Pipe()
    with here, there:
        send(here, {"text": text_of(data)})
        assert bytes_of(receive(there)["text"]) == data


@pytest.mark.parametrize("data", [b"", b"\xff", b"{", b"[]", b'"text"', b"null", b"\n", b"[]\n{}"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    here, there = Pipe()
    with here, there:
        here.send_bytes(data)
        with pytest.raises(ValueError):  # noqa: PT011  # json's own, or ours
            receive(there)


def test_a_message_that_is_too_long_is_refused_before_it_is_read() -> None:
    here, there = Pipe()
    with here, there:
        here._send((MESSAGE_BYTES + 1).to_bytes(4, "big"))  # type: ignore[attr-defined]
        with pytest.raises(OSError):  # noqa: PT011  # multiprocessing gives no reason
            receive(there)


SECRET = b"of this test"


def test_each_side_refuses_another_secret() -> None:
    link, command = Pipe()
    with link, command:
        proof = Call(lambda: authenticate_command(link, SECRET))
        with pytest.raises(NotProved):
            authenticate_link(command, b"another")
        with pytest.raises(NotProved):
            proof.result()


def test_the_answer_of_one_command_is_no_proof_of_the_link_to_another() -> None:
    """The attack: a process in the link's place gives the first one's bytes to a second."""
    (squatter, first), (beside, second) = Pipe(), Pipe()
    with squatter, first, beside, second:
        proof = Call(lambda: authenticate_link(first, SECRET))
        other = Call(lambda: authenticate_link(second, SECRET))
        squatter.send_bytes(bytes(32))
        ours = squatter.recv_bytes(256)
        beside.send_bytes(ours[:32])
        squatter.send_bytes(beside.recv_bytes(256)[32:])
        with pytest.raises(NotProved):
            proof.result()
        beside.send_bytes(ours[32:])
        with pytest.raises(NotProved):
            other.result()


@pytest.mark.parametrize("said", [b"", b"x", bytes(33)])
def test_a_link_that_asks_for_no_proof_gets_none(said: bytes) -> None:
    link, command = Pipe()
    with link, command:
        link.send_bytes(said)
        with pytest.raises(NotProved):
            authenticate_link(command, SECRET)
        assert not link.poll()


def test_a_pipe_of_windows_has_a_name_that_only_the_secret_tells() -> None:
    pipes = {pipe_name(secret) for secret in (b"one", b"another")}
    assert len(pipes) == 2
    assert all(pipe.startswith("\\\\.\\pipe\\jlr-") for pipe in pipes)
    assert pipe_name(b"one") in pipes


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_folders(monkeypatch, tmp_path)


def test_another_host_or_configuration_shares_no_file(tmp_path: Path) -> None:
    links = [
        LinkFiles("dgx", None),
        LinkFiles("DGX", None),
        LinkFiles("me@dgx", None),
        LinkFiles("dgx", tmp_path / "config"),
        LinkFiles("dgx", tmp_path / "other"),
    ]
    files = [file for link in links for file in list(vars(link).values())[3:]]
    assert len(set(files)) == len(files)


@pytest.mark.skipif(os.name == "nt", reason="Windows has named pipes instead")
def test_a_folder_whose_path_is_too_long_for_sockets_has_them_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for letter in "xy":
        long = tmp_path / (letter * 100)
        long.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
        files = LinkFiles("dgx", None)
        assert files.lock.is_relative_to(long)
        found += [files.socket, files.mount_socket]
        files.socket.unlink(missing_ok=True)
        with sockets.Listener(str(files.socket)):
            assert files.socket.parent.stat().st_mode & 0o077 == 0
    assert len(set(found)) == 4
    for folder in {path.parent for path in found}:
        folder.rmdir()
