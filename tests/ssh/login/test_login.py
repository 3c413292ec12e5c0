"""The login against a server in memory: which method is tried when, and with which secret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko
import pytest
from paramiko import common

from jlremote.errors import Authentication
from jlremote.ssh.config.destination import Destination, LoginRules
from jlremote.ssh.login.credentials import Credentials, RefusedSecrets, password_account
from jlremote.ssh.login.methods import Login
from jlremote.ssh.login.user_authentication import Challenge, Outcome, UserAuthentication
from jlremote.ssh.wire_format import string
from tests.login.keychain import MemoryKeychain
from tests.ssh.laptop import Person

IN = Outcome(success=True)


@dataclass
class Server:
    """A server that accepts `password`, `code`, or both in turn.

    Attributes:
        methods: the methods that it names.
        required: the methods that must succeed, in order.
        limit: attempts after which it hangs up.
        reasons: what it says of the account.
    """

    methods: tuple[str, ...] = ("password",)
    required: list[str] = field(default_factory=lambda: ["password"])
    password_: str = "right"
    prompts: tuple[tuple[str, bool], ...] = (("Password: ", False),)
    right: tuple[str, ...] = ("right",)
    limit: int = 6
    reasons: list[str] = field(default_factory=list)
    expired: bool = False
    sent: list[Any] = field(default_factory=list)

    def begin(self) -> Outcome:
        self.sent.append("begin")
        return Outcome(success=False, methods=self.methods)

    def password(self, password: str) -> Outcome:
        self.sent.append(password)
        if self.expired:
            return Outcome(success=False, expired="change it")
        return self._judge("password", right=password == self.password_)

    def interactive(self, answer: Callable[[Challenge], Sequence[str]]) -> Outcome:
        answers = tuple(answer(Challenge("", "", self.prompts)))
        self.sent.append(answers)
        return self._judge("keyboard-interactive", right=answers == self.right)

    def turned_away(self) -> bool:
        return self._is_over()

    def server_signatures(self) -> None:
        return None

    def _judge(self, method: str, *, right: bool) -> Outcome:
        if right and self.required[:1] == [method]:
            self.required.pop(0)
            if not self.required:
                return IN
            return Outcome(success=False, methods=tuple(self.required), partial=True)
        if self._is_over():
            raise EOFError
        return Outcome(success=False, methods=self.methods)

    def _is_over(self) -> bool:
        return len(self.sent) > self.limit


def destination(**rules: Any) -> Destination:
    return Destination("lab", "lab.example.org", 22, "me", login=LoginRules(**rules))


def attempt(
    server: Server,
    *answers: str,
    keychain: MemoryKeychain | None = None,
    refused: RefusedSecrets | None = None,
    remember: Any = "ask",
    **rules: Any,
) -> Person:
    person = Person(list(answers))
    credentials = Credentials(person, keychain, remember, refused or RefusedSecrets())
    wire: Any = server
    Login(wire, destination(**rules), credentials, None).run()
    return person


def test_an_expired_password_is_an_error_with_the_command_that_changes_it() -> None:
    with pytest.raises(Authentication, match="has expired: change it") as caught:
        attempt(Server(expired=True), "right")
    assert caught.value.hint == "change it with `ssh lab`"


def test_a_prompt_for_a_one_time_password_gets_no_remembered_password() -> None:
    keychain = MemoryKeychain({password_account(destination()): "right"})
    server = Server(
        methods=("keyboard-interactive",),
        required=["keyboard-interactive"],
        prompts=(("One-time password: ", False),),
        right=("77",),
    )
    person = attempt(server, "77", keychain=keychain)
    assert len(person.asked) == 1
    assert keychain.kept[password_account(destination())] == "right"


def test_a_server_that_asks_nothing_is_not_asked_again() -> None:
    server = Server(
        methods=("keyboard-interactive",), required=["password"], prompts=(), right=("x",)
    )
    with pytest.raises(Authentication, match=r"tried keyboard-interactive \(1 attempt\)"):
        attempt(server)
    assert server.sent == ["begin", ()]


@pytest.mark.parametrize(("remember", "present"), [("no", True), ("ask", False), ("yes", False)])
def test_nothing_is_asked_about_a_keychain_that_is_not_used(remember: str, present: bool) -> None:
    keychain = MemoryKeychain(present=present)
    person = attempt(Server(), "right", keychain=keychain, remember=remember)
    assert len(person.asked) == 1
    assert keychain.kept == {}


def test_methods_that_the_config_switches_off_are_named() -> None:
    with pytest.raises(Authentication) as caught:
        attempt(Server(methods=("hostbased",)), methods=("password",))
    assert "allows only password" in (caught.value.hint or "")


def test_a_missing_key_is_named_when_the_config_names_one(tmp_path: Path) -> None:
    missing = tmp_path / "id"
    with pytest.raises(Authentication) as caught:
        attempt(Server(methods=("publickey",)), identity_files=(missing,))
    assert f"`{missing}` does not exist" in (caught.value.hint or "")
    with pytest.raises(Authentication) as caught:
        attempt(Server(methods=("publickey",)), identity_files=(missing, tmp_path / "id2"))
    assert "does not exist" not in (caught.value.hint or "")


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
        asked()[0].begin()


def test_another_message_than_expected_is_an_error() -> None:
    with pytest.raises(paramiko.SSHException, match="unexpected message 51, not 6"):
        asked((common.MSG_USERAUTH_FAILURE, string(b"password") + b"\0"))[0].begin()
    with pytest.raises(paramiko.SSHException, match="unexpected message 6 during authentication"):
        asked((common.MSG_SERVICE_ACCEPT, b""), (common.MSG_SERVICE_ACCEPT, b""))[0].begin()
