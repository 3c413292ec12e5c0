"""A command and the link know each other by a secret, and neither proof serves as the other."""

from __future__ import annotations

from multiprocessing import AuthenticationError, Pipe

import pytest

from jlremote.link.wire.authentication import authenticate_command, authenticate_link, pipe_name
from tests.link.fakes import Call

SECRET = b"of this test"


def test_both_know_each_other_by_the_secret() -> None:
    link, command = Pipe()
    with link, command:
        proof = Call(lambda: authenticate_command(link, SECRET))
        authenticate_link(command, SECRET)
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
        with pytest.raises(AuthenticationError):
            proof.result()


def test_a_pipe_of_windows_has_a_name_that_only_the_secret_tells() -> None:
    pipes = {pipe_name(secret) for secret in (b"one", b"another")}
    assert len(pipes) == 2
    assert all(pipe.startswith("\\\\.\\pipe\\jlr-") for pipe in pipes)
    assert pipe_name(b"one") in pipes
