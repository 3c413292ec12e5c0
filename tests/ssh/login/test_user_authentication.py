"""Odd answers of a server during the login, from a transport in memory."""

from __future__ import annotations

from typing import Any

import paramiko
import pytest
from paramiko import common

from jlremote.ssh.login.user_authentication import UserAuthentication
from jlremote.ssh.wire_format import string


class Transport:
    """Answers each message with the next one of a list."""

    auth_handler: Any = None

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.answers = list(answers)
        self.triggered = 0

    def _send_message(self, _message: Any) -> None:
        if self.answers:
            self.answer(*self.answers.pop(0))

    def answer(self, kind: int, body: bytes) -> None:
        self.auth_handler._handler_table[kind](paramiko.Message(body))

    def _auth_trigger(self) -> None:
        self.triggered += 1


def asked(*answers: tuple[int, bytes]) -> tuple[UserAuthentication, Transport]:
    transport = Transport(*answers)
    return UserAuthentication(transport, "me", 0.05), transport


SUCCESS = (common.MSG_USERAUTH_SUCCESS, b"")


def test_a_success_switches_compression_on_once() -> None:
    wire, transport = asked(SUCCESS)
    assert not wire.is_authenticated()
    assert wire.password("secret").success
    transport.answer(*SUCCESS)
    assert transport.triggered == 1
    assert wire.is_authenticated()


def test_a_server_that_does_not_answer_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        asked()[0].none()


def test_another_message_than_expected_is_an_error() -> None:
    with pytest.raises(paramiko.SSHException, match="unexpected message 51, not 6"):
        asked((common.MSG_USERAUTH_FAILURE, string(b"password") + b"\0"))[0].begin()
    with pytest.raises(paramiko.SSHException, match="unexpected message 6 during authentication"):
        asked((common.MSG_SERVICE_ACCEPT, b""))[0].none()
