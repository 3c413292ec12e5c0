"""A host with a password: asked once, at the first command with a terminal, and never in vain."""

from __future__ import annotations

import time

import pytest

from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.programs import load, wait_until
from tests.lab.sshd import SSHServer
from tests.login.parts import (
    PASSWORD,
    at_terminal,
    connections,
    failures,
    is_over,
    log_in,
    logins,
    start,
    started,
    starting,
)
from tests.long import LONG
from tests.sessions.parts import failed


def test_the_password_is_asked_for_at_the_first_command_and_at_no_other(
    laptop: Laptop, asking: SSHServer
) -> None:
    before = logins(asking)
    shown = log_in(laptop, "asking", ("Password: ", PASSWORD))
    assert PASSWORD not in shown
    path = started(laptop, "asking").stdout.rstrip().split("/", 3)[3]
    assert path in shown
    with at_terminal(laptop, "url") as terminal:
        assert terminal.ends() == 0
    assert logins(asking) - before == 1


def test_a_password_that_was_refused_is_not_sent_twice(laptop: Laptop, plain: SSHServer) -> None:
    before = failures(plain)
    answers = [("password of", "wrong a"), ("refused that password", "wrong a")]
    log_in(laptop, "plain", *answers, ("not sent again", PASSWORD))
    assert failures(plain) - before == 1


def test_three_wrong_passwords_end_the_login_with_the_tried_methods(
    laptop: Laptop, asking: SSHServer, account: Account
) -> None:
    with starting(laptop, "asking") as terminal:
        for number in range(3):
            terminal.answers("Password: ", f"wrong {number}")
        assert terminal.ends() == 4
    assert "tried keyboard-interactive (3 attempts)" in terminal.text
    assert f"whether `{account.name}` is the user there" in terminal.text
    is_over(laptop)


def test_ctrl_c_at_the_prompt_ends_the_login(laptop: Laptop, asking: SSHServer) -> None:
    with starting(laptop, "asking") as terminal:
        terminal.sees("Password: ")
        terminal.interrupts()
        assert terminal.ends() == 130
    assert "error" not in terminal.text
    is_over(laptop)
    before = connections(asking)
    time.sleep(1.5)  # for a link that is not there to try again
    assert connections(asking) == before


def test_an_empty_answer_or_the_end_of_input_is_no_password(
    laptop: Laptop, plain: SSHServer
) -> None:
    before = failures(plain)
    with starting(laptop, "plain") as terminal:
        terminal.answers("password of", "")
        assert terminal.ends() == 4
    assert "Traceback" not in terminal.text
    assert failures(plain) == before


@pytest.mark.parametrize("words", [(), LONG(("--no-input",))])
def test_without_a_terminal_the_login_ends_at_once_with_a_hint(
    laptop: Laptop, asking: SSHServer, words: tuple[str, ...]
) -> None:
    before = connections(asking)
    began = time.monotonic()
    remedy = "without `--no-input`" if words else "in a terminal"
    failed(start(laptop, "asking", *words), 4, "a password is needed", f"once {remedy}")
    assert time.monotonic() - began < 10 * load()
    wait_until(lambda: connections(asking) == before + 1, "the server's log")
    is_over(laptop)


def test_no_input_asks_nothing_even_in_a_terminal(laptop: Laptop, asking: SSHServer) -> None:
    with starting(laptop, "asking", "--no-input") as terminal:
        assert terminal.ends() == 4
    assert "Password" not in terminal.text.partition("error: ")[0]
