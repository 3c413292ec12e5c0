"""The messages of RFC 4252 and 4256, against a transport in memory."""

from __future__ import annotations

from typing import Any

import paramiko
import pytest
from paramiko import common

from jlremote.ssh.login.user_authentication import (
    Challenge,
    Outcome,
    PasswordExpired,
    UserAuthentication,
)
from jlremote.ssh.wire_format import string

ME = string(b"me") + string(b"ssh-connection")


class Transport:
    """Answers each message with the next one of a list."""

    session_id = b"session"

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.answers = list(answers)
        self.sent: list[bytes] = []
        self.auth_handler: Any = None
        self.server_extensions: dict[str, bytes] = {}
        self.disconnection = ""
        self.triggered = 0

    def _send_message(self, message: Any) -> None:
        self.sent.append(message.asbytes())
        if self.answers:
            self.answer(*self.answers.pop(0))

    def answer(self, kind: int, body: bytes) -> None:
        self.auth_handler._handler_table[kind](paramiko.Message(body))

    def _auth_trigger(self) -> None:
        self.triggered += 1

    def get_exception(self) -> Exception | None:
        return None


def failure(*methods: str, partial: bool = False) -> tuple[int, bytes]:
    body = string(",".join(methods).encode()) + bytes((partial,))
    return common.MSG_USERAUTH_FAILURE, body


SUCCESS = (common.MSG_USERAUTH_SUCCESS, b"")


def asked(*answers: tuple[int, bytes]) -> tuple[UserAuthentication, Transport]:
    transport = Transport(*answers)
    return UserAuthentication(transport, "me", 0.05), transport


def test_the_service_is_requested_first() -> None:
    wire, transport = asked((common.MSG_SERVICE_ACCEPT, string(b"ssh-userauth")))
    wire.begin()
    assert transport.sent == [common.cMSG_SERVICE_REQUEST + string(b"ssh-userauth")]


def test_the_methods_of_a_server_are_its_answer_to_none() -> None:
    wire, transport = asked(failure("publickey", "password"))
    assert wire.none() == Outcome(success=False, methods=("publickey", "password"))
    assert transport.sent == [common.cMSG_USERAUTH_REQUEST + ME + string(b"none")]


def test_a_success_switches_compression_on_once() -> None:
    wire, transport = asked(SUCCESS)
    assert not wire.is_authenticated()
    assert wire.password("secret").success
    transport.answer(*SUCCESS)
    assert transport.triggered == 1
    assert wire.is_authenticated()
    assert wire.get_username() == "me"


def test_a_partial_success_names_what_is_still_needed() -> None:
    wire, _ = asked(failure("keyboard-interactive", partial=True))
    expected = Outcome(success=False, methods=("keyboard-interactive",), partial=True)
    assert wire.password("secret") == expected


def test_an_expired_password_is_told_with_the_servers_words() -> None:
    wire, _ = asked((60, string("zu alt: ü".encode()) + string(b"")))
    with pytest.raises(PasswordExpired, match="zu alt: ü"):
        wire.password("secret")


def test_a_key_is_signed_only_when_the_server_wants_it() -> None:
    wire, transport = asked((60, string(b"ssh-ed25519") + string(b"blob")))
    assert wire.wants_key("ssh-ed25519", b"blob") is None
    refusing, _ = asked(failure("password"))
    assert refusing.wants_key("ssh-ed25519", b"blob") == Outcome(
        success=False, methods=("password",)
    )
    request = ME + string(b"publickey") + b"\0" + string(b"ssh-ed25519") + string(b"blob")
    assert transport.sent == [common.cMSG_USERAUTH_REQUEST + request]


def test_a_signature_covers_the_session_and_the_request() -> None:
    wire, transport = asked(SUCCESS)
    signed: list[bytes] = []

    def sign(data: bytes, algorithm: str) -> bytes:
        assert algorithm == "ssh-ed25519"
        signed.append(data)
        return b"signature"

    assert wire.key("ssh-ed25519", b"blob", sign).success
    request = common.cMSG_USERAUTH_REQUEST + ME + string(b"publickey") + b"\1"
    request += string(b"ssh-ed25519") + string(b"blob")
    assert signed == [string(b"session") + request]
    assert transport.sent == [request + string(b"signature")]


def test_each_round_of_prompts_is_answered() -> None:
    first = string(b"PAM") + string(b"two factors") + string(b"")
    first += (1).to_bytes(4, "big") + string(b"Password: ") + b"\0"
    second = string(b"") * 3 + (0).to_bytes(4, "big")
    wire, transport = asked((60, first), (60, second), SUCCESS)
    rounds: list[Challenge] = []

    def answer(challenge: Challenge) -> list[str]:
        rounds.append(challenge)
        return ["secret" for _ in challenge.prompts]

    assert wire.interactive(answer).success
    assert rounds == [
        Challenge("PAM", "two factors", (("Password: ", False),)),
        Challenge("", "", ()),
    ]
    head = common.cMSG_USERAUTH_INFO_RESPONSE
    assert transport.sent[1:] == [
        head + (1).to_bytes(4, "big") + string(b"secret"),
        head + (0).to_bytes(4, "big"),
    ]


def test_what_the_server_says_after_a_refusal_is_its_reason() -> None:
    wire, transport = asked()
    transport.answer(common.MSG_USERAUTH_BANNER, string(b"welcome") + string(b""))
    wire._refused = True
    for text in (b"expired", b"\xff"):
        transport.answer(common.MSG_USERAUTH_BANNER, string(text) + string(b""))
    assert wire.reasons == ["expired", "\ufffd"]


def test_a_server_that_does_not_answer_is_given_up() -> None:
    wire, _ = asked()
    with pytest.raises(TimeoutError):
        wire.none()


def test_a_connection_that_ends_wakes_the_login() -> None:
    wire, transport = asked()
    transport.auth_handler.abort()
    with pytest.raises(EOFError, match="closed the connection"):
        wire.none()


def test_another_message_than_expected_is_an_error() -> None:
    wire, _ = asked(failure("password"))
    with pytest.raises(paramiko.SSHException, match="unexpected message 51, not 6"):
        wire.begin()
    accepted, _ = asked((common.MSG_SERVICE_ACCEPT, b""))
    with pytest.raises(paramiko.SSHException, match="unexpected message 6 during authentication"):
        accepted.none()


def test_the_signatures_of_a_server_are_those_that_it_names() -> None:
    wire, transport = asked()
    assert wire.server_signatures() is None
    transport.server_extensions["server-sig-algs"] = b"ssh-ed25519,rsa-sha2-512"
    assert wire.server_signatures() == ("ssh-ed25519", "rsa-sha2-512")


def test_a_server_that_hangs_up_after_too_many_attempts_has_refused() -> None:
    wire, transport = asked()
    assert not wire.turned_away()
    transport.disconnection = "Too many authentication failures"
    assert wire.turned_away()
