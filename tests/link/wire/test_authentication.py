"""A command and the link know each other by a secret, and neither proof serves as the other."""

from __future__ import annotations

from multiprocessing import Pipe

import pytest

from jlremote.link.wire.protocol import (
    NotProved,
    authenticate_command,
    authenticate_link,
    pipe_name,
)
from tests.link.fakes import Call

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
