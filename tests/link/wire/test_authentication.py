"""A command and the link know each other by a secret, and neither proof serves as the other."""

from __future__ import annotations

import hmac
from multiprocessing import Pipe

import pytest

from jlremote.link.wire.authentication import (
    NotProved,
    authenticate_command,
    authenticate_link,
    pipe_name,
)
from tests.link.fakes import Call

SECRET = b"of this test"


def test_both_know_each_other_by_the_secret() -> None:
    link, command = Pipe()
    with link, command:
        proof = Call(lambda: authenticate_command(link, SECRET))
        authenticate_link(command, SECRET)
        proof.result()


def test_each_side_refuses_another_secret() -> None:
    link, command = Pipe()
    with link, command:
        proof = Call(lambda: authenticate_command(link, SECRET))
        with pytest.raises(NotProved):
            authenticate_link(command, b"another")
        with pytest.raises(NotProved):
            proof.result()


@pytest.mark.parametrize(("name", "digest"), [(b"", "md5"), (b"{sha256}", "sha256")])
@pytest.mark.parametrize("is_right", [True, False])
def test_a_link_of_any_python_is_known_by_its_proof(
    name: bytes, digest: str, is_right: bool
) -> None:
    """Challenges name their digest from Python 3.12 on."""
    link, command = Pipe()
    key = {use: hmac.digest(SECRET, use, "sha256") for use in (b"command", b"link")}
    with link, command:
        proof = Call(lambda: authenticate_link(command, SECRET))
        text = name + bytes(20)
        link.send_bytes(b"#CHALLENGE#" + text)
        assert link.recv_bytes() == name + hmac.digest(key[b"command"], text, digest)
        link.send_bytes(b"#WELCOME#")
        challenge = link.recv_bytes(256)
        assert challenge.startswith(b"#CHALLENGE#" + name)
        answer = hmac.digest(key[b"link"], challenge.removeprefix(b"#CHALLENGE#"), digest)
        link.send_bytes(name + (answer if is_right else bytes(len(answer))))
        if is_right:
            assert link.recv_bytes() == b"#WELCOME#"
            proof.result()
        else:
            assert link.recv_bytes() == b"#FAILURE#"
            with pytest.raises(NotProved):
                proof.result()


def test_the_answer_of_one_command_is_no_proof_of_the_link_to_another() -> None:
    """The attack: a process in the link's place gives the first one's challenge to a second."""
    (squatter, first), (beside, second) = Pipe(), Pipe()
    with squatter, first, beside, second:
        proof = Call(lambda: authenticate_link(first, SECRET))
        Call(lambda: authenticate_link(second, SECRET))
        squatter.send_bytes(b"#CHALLENGE#{sha256}" + bytes(20))
        squatter.recv_bytes(256)  # the first one's answer
        squatter.send_bytes(b"#WELCOME#")
        beside.send_bytes(squatter.recv_bytes(256))
        squatter.send_bytes(beside.recv_bytes(256))
        with pytest.raises(NotProved):
            proof.result()


def test_a_pipe_of_windows_has_a_name_that_only_the_secret_tells() -> None:
    pipes = {pipe_name(secret) for secret in (b"one", b"another")}
    assert len(pipes) == 2
    assert all(pipe.startswith("\\\\.\\pipe\\jlr-") for pipe in pipes)
    assert pipe_name(b"one") in pipes
