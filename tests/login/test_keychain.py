"""Secrets in a real Secret Service: kept when wanted, gone when wrong, and never an obstacle."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.programs import load, wait_until
from tests.lab.sshd import SSHServer
from tests.login.keychain import SecretService
from tests.login.parts import (
    PASSWORD,
    disconnect,
    failures,
    listed,
    log_in,
    logins,
    started,
    starting,
    wait_for_state,
)
from tests.long import LONG

ASKED = ("password of", PASSWORD)
KEEP = "(y/N) "


def test_a_remembered_password_is_asked_for_once(
    laptop: Laptop, plain: SSHServer, keychain: SecretService
) -> None:
    assert KEEP not in log_in(laptop, "plain", ASKED, options=("--remember",))
    assert list(keychain.contents().values()) == [PASSWORD]
    disconnect(laptop, "plain")
    started(laptop, "plain")
    before = logins(plain)
    plain.drop_connections()
    wait_until(lambda: logins(plain) == before + 1, "the link to come back by itself")
    wait_for_state(laptop, "up")


def test_forget_deletes_the_secrets_and_lists_them(
    laptop: Laptop, plain: SSHServer, account: Account, keychain: SecretService
) -> None:
    log_in(laptop, "plain", ASKED, options=("--remember",))
    told = laptop.jlr("disconnect", "plain", "--forget")
    forgotten = f"forgot the password {account.name}@[127.0.0.1]:{plain.port}\n"
    assert told.stdout == f"disconnected from plain\n{forgotten}", told
    assert keychain.contents() == {}
    again = laptop.jlr("disconnect", "plain", "--forget")
    assert (again.status, again.stdout) == (0, "")
    assert "nothing is remembered for plain" in again.stderr
    disconnect(laptop, "plain")
    assert KEEP in log_in(laptop, "plain", ASKED, (KEEP, "n"))


def test_a_no_to_keeping_is_remembered_until_it_is_asked_for(
    laptop: Laptop, plain: SSHServer, keychain: SecretService
) -> None:
    shown = log_in(laptop, "plain", ASKED, (KEEP, ""))
    assert shown.count("keep the password of") == 1
    assert "(yes/no)" not in shown
    disconnect(laptop, "plain")
    assert KEEP not in log_in(laptop, "plain", ASKED)
    assert PASSWORD not in keychain.contents().values()
    disconnect(laptop, "plain")
    log_in(laptop, "plain", ASKED, options=("--remember",))
    assert list(keychain.contents().values()) == [PASSWORD]


def test_no_remember_keeps_nothing_and_asks_again_later(
    laptop: Laptop, plain: SSHServer, keychain: SecretService
) -> None:
    assert KEEP not in log_in(laptop, "plain", ASKED, options=("--no-remember",))
    assert keychain.contents() == {}
    disconnect(laptop, "plain")
    log_in(laptop, "plain", ASKED, (KEEP, "y"))
    assert list(keychain.contents().values()) == [PASSWORD]


def test_a_remembered_password_that_was_changed_is_sent_once_deleted_and_asked_for(
    laptop: Laptop, plain: SSHServer, account: Account, keychain: SecretService
) -> None:
    log_in(laptop, "plain", ASKED, options=("--remember",))
    disconnect(laptop, "plain")
    account.set_password("another horse")
    try:
        before = failures(plain)
        with starting(laptop, "plain") as terminal:
            terminal.answers("password of", "another horse")
            terminal.sees(KEEP)
            assert keychain.contents() == {}
            terminal.answers("", "y")
            assert terminal.ends() == 0
        assert failures(plain) - before == 1
        assert list(keychain.contents().values()) == ["another horse"]
    finally:
        account.set_password(PASSWORD)


def test_a_code_is_never_kept(
    laptop: Laptop, two: SSHServer, codes: Iterator[str], keychain: SecretService
) -> None:
    password, code = ("Password: ", PASSWORD), ("Verification code: ", next(codes))
    log_in(laptop, "two", password, code, options=("--remember",))
    assert list(keychain.contents().values()) == [PASSWORD]
    two.drop_connections()
    wait_for_state(laptop, "needs-auth")
    assert "Verification code" in listed(laptop)["detail"]
    shown = log_in(laptop, "two", ("Verification code: ", next(codes)))
    assert "Password" not in shown
    assert list(keychain.contents().values()) == [PASSWORD]


@pytest.mark.parametrize("options", [(), LONG(("--remember",))])
def test_a_locked_keychain_does_not_prevent_the_login(
    laptop: Laptop, plain: SSHServer, keychain: SecretService, options: tuple[str, ...]
) -> None:
    log_in(laptop, "plain", ASKED, options=("--remember",))
    disconnect(laptop, "plain")
    keychain.lock()
    began = time.monotonic()
    assert KEEP not in log_in(laptop, "plain", ASKED, options=options)
    assert time.monotonic() - began < 20 * load()


def test_a_keychain_that_hangs_costs_its_deadline_once(
    laptop: Laptop, plain: SSHServer, keychain: SecretService
) -> None:
    keychain.hang()
    began = time.monotonic()
    assert KEEP not in log_in(laptop, "plain", ASKED)
    assert time.monotonic() - began < 20 * load()
    began = time.monotonic()
    plain.drop_connections()
    wait_for_state(laptop, "needs-auth")
    assert time.monotonic() - began < 10 * load()
