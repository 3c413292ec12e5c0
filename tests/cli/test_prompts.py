"""Questions are asked on the terminal itself, not on stdin and stdout."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jlremote.cli.keyboard.prompts import NO_INPUT, Person
from jlremote.errors import NeedsAuthentication
from jlremote.questions import Question, QuestionKind
from tests.cli.terminal import Terminal

ASK = """
import contextlib, json, signal, sys
from jlremote.cli.keyboard.prompts import Person
from jlremote.errors import NeedsAuthentication
from jlremote.questions import Question
@contextlib.contextmanager
def paused():
    print("paused", file=sys.stderr)
    yield
    print("resumed", file=sys.stderr)
kind, text = sys.argv[1:3]
# With `SA_RESTART` no signal interrupts a read, as none does that comes by a hair before it.
signal.siginterrupt(signal.SIGINT, False)
try:
    print(json.dumps(Person(paused).ask(Question(kind, text, echo="echo" in sys.argv))))
except NeedsAuthentication as refusal:
    print(refusal.message)
"""

HOST_KEY = "The authenticity of host 'dgx' cannot be established.\nED25519 key is SHA256:abc/+d."


@pytest.fixture
def terminal(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    """Give a process that asks on its terminal, while its stdin is empty and the rest are pipes."""
    terminal = Terminal(
        [sys.executable, "-c", ASK, *request.param],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    yield terminal
    terminal.close()


@pytest.mark.parametrize("terminal", [("password", "me@dgx's password:")], indirect=True)
def test_a_password_is_asked_for_and_not_shown(terminal: Terminal) -> None:
    terminal.wait_for("me@dgx's password: ")
    terminal.type("hunter2\n")
    assert terminal.result() == ('"hunter2"\n', "paused\nresumed\n")
    assert "hunter2" not in terminal.screen


@pytest.mark.parametrize("terminal", [("host-key", HOST_KEY)], indirect=True)
@pytest.mark.parametrize(("typed", "answer"), [("NO", "no"), ("SHA256:abc/+d", "yes")])
def test_a_host_key_question_takes_only_a_whole_word_or_the_fingerprint(
    typed: str, answer: str, terminal: Terminal
) -> None:
    terminal.wait_for("(yes/no/[fingerprint])? ")
    for not_enough in ("y", "SHA256:other", ""):
        terminal.forget()
        terminal.type(not_enough + "\n")
        terminal.wait_for("Please type `yes`, `no` or the fingerprint: ")
    terminal.type(typed + "\n")
    assert terminal.result()[0] == f'"{answer}"\n'


@pytest.mark.parametrize("terminal", [("remember", "Keep it in the keyring?")], indirect=True)
@pytest.mark.parametrize(("typed", "answer"), [("Yes", "yes"), ("", "no")])
def test_a_password_is_remembered_only_after_yes(
    typed: str, answer: str, terminal: Terminal
) -> None:
    terminal.wait_for("(y/N) ")
    terminal.type(typed + "\n")
    assert terminal.result()[0] == f'"{answer}"\n'


@pytest.mark.parametrize("terminal", [("password", "Password:")], indirect=True)
def test_ctrl_d_leaves_a_question_unanswered(terminal: Terminal) -> None:
    terminal.wait_for("Password: ")
    terminal.type("\x04")
    assert terminal.result()[0] == "the question was not answered\n"


@pytest.mark.parametrize("terminal", [("confirm", "Delete it?", "echo")], indirect=True)
def test_ctrl_d_at_the_question_before_a_loss_is_a_no(terminal: Terminal) -> None:
    """To a script's call, where nobody can be asked, no answer means go on."""
    terminal.wait_for("Delete it? (y/N) ")
    terminal.type("\x04")
    assert terminal.result()[0] == '"no"\n'


@pytest.mark.parametrize("terminal", [("password", "Password:")], indirect=True)
def test_ctrl_c_during_a_question_restores_the_echo(terminal: Terminal) -> None:
    terminal.wait_for("Password: ")
    assert not terminal.echoes()
    terminal.type("\x03")
    assert "KeyboardInterrupt" in terminal.result()[1]
    assert terminal.echoes()


@pytest.mark.parametrize("terminal", [("password", "\x1b[2Jdgx\x07's password:")], indirect=True)
def test_control_characters_of_a_prompt_do_not_reach_the_terminal(terminal: Terminal) -> None:
    terminal.wait_for("dgx's password: ")
    terminal.type("x\n")
    terminal.result()
    assert "\x1b" not in terminal.screen
    assert "\x07" not in terminal.screen


def test_a_question_without_a_terminal_is_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, "password", "me@dgx's password:"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    message = "a password is needed, and jlr cannot ask: me@dgx's password\n"
    assert (done.stdout, done.stderr) == (message, "")


def test_the_remember_option_answers_the_question() -> None:
    kinds: tuple[QuestionKind, ...] = ("remember", "remember-again")
    for kind in kinds:
        question = Question(kind, "keep it?")
        assert Person(contextlib.nullcontext, remember=True).ask(question) == "yes"
        with pytest.raises(NeedsAuthentication):  # not `no`, which would count for ever
            Person(contextlib.nullcontext, remember=False).ask(question)
    with pytest.raises(NeedsAuthentication):  # it was refused before
        Person(contextlib.nullcontext).ask(Question("remember-again", "keep it?"))


def test_an_unknown_host_is_refused_with_its_fingerprint_if_jlr_cannot_ask() -> None:
    with pytest.raises(NeedsAuthentication) as refusal:
        NO_INPUT.ask(Question("host-key", f"{HOST_KEY}\nconnect, and remember this key"))
    assert "SHA256:abc/+d" in refusal.value.message
    assert "connect, and" not in refusal.value.message
