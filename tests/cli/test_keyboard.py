"""Questions are asked on the terminal itself; `jlr shell` passes on keys, escapes and input."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jlremote.cli.keyboard import Keyboard, without_echo
from jlremote.cli.keyboard.local_terminal import Escapes, LocalTerminal
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
def test_a_password_is_kept_only_after_yes(typed: str, answer: str, terminal: Terminal) -> None:
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


@pytest.mark.parametrize(
    ("typed", "sent", "hung_up"),
    [
        ("~.", "", True),
        ("ls\r~.", "ls\r", True),
        ("ls\n~.more", "ls\n", True),
        ("ls ~.", "ls ~.", False),
        ("~~.", "~.", False),
        ("~~\r", "~\r", False),
        ("~/bin/x\r~", "~/bin/x\r", False),
        ("~\r~.", "~\r", True),
        ("", "", False),
    ],
)
@pytest.mark.parametrize("piece", [1, 100])
def test_only_a_tilde_at_the_beginning_of_a_line_begins_an_escape(
    typed: str, sent: str, hung_up: bool, piece: int
) -> None:
    escapes = Escapes()
    pieces = (typed.encode()[at : at + piece] for at in range(0, len(typed), piece))
    out = b""
    for data in pieces:
        out += escapes.without(data)
        if escapes.hung_up:
            break
    assert (out.decode(), escapes.hung_up) == (sent, hung_up)


def test_bytes_of_a_host_reach_streams_unchanged(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    terminal = LocalTerminal()
    terminal.show("stdout", b"\x00\xff\r\n")
    terminal.show("stderr", b"\x1b[2J")
    assert capfdbinary.readouterr() == (b"\x00\xff\r\n", b"\x1b[2J")


TYPED = """
from jlremote.cli.keyboard.local_terminal import LocalTerminal
terminal = LocalTerminal()
with terminal.taken():
    print(terminal.kind, [bytes(part) for part in terminal.typed()])
terminal.recover()
"""


def python(script: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-c", script]
    return subprocess.run(argv, stderr=subprocess.PIPE, timeout=60, **streams)


def test_piped_input_has_no_escapes_and_no_terminal_and_a_closed_one_is_empty() -> None:
    done = python(TYPED, input=b"~.\n~~\xff", stdout=subprocess.PIPE)
    assert done.stdout == b"None [b'~.\\n~~\\xff', b'']\n"
    done = python(f"import os; os.close(0)\n{TYPED}", input=b"", stdout=subprocess.PIPE)
    assert done.stdout == b"None [b'']\n"


def test_output_that_cannot_be_written_is_one_clear_error() -> None:
    script = (
        "from jlremote.cli.keyboard.local_terminal import LocalTerminal\n"
        "from jlremote.errors import JlrError\n"
        "import sys\n"
        "try: LocalTerminal().show('stdout', b'x')\n"
        "except JlrError as error: sys.exit(error.message)\n"
    )
    with Path("/dev/full").open("wb") as full:
        done = python(script, stdout=full)
    told = b"cannot write the output: no space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.fixture
def keys() -> Iterator[tuple[int, int]]:
    """Give both ends of a terminal: the person's and the program's."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_a_raw_keyboard_passes_on_ctrl_c_and_is_restored(keys: tuple[int, int]) -> None:
    person, program = keys
    before = termios.tcgetattr(program)
    keyboard = Keyboard(program)
    with keyboard.raw():
        assert not termios.tcgetattr(program)[3] & (termios.ECHO | termios.ISIG)
        os.write(person, b"\x03q")
        assert next(keyboard.events()) == b"\x03q"
    assert termios.tcgetattr(program) == before


def test_a_raw_keyboard_gives_each_new_size(keys: tuple[int, int]) -> None:
    person, program = keys
    keyboard = Keyboard(program)
    handler = signal.getsignal(signal.SIGWINCH)
    with keyboard.raw():
        termios.tcsetwinsize(person, (33, 111))
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGWINCH)
        assert next(keyboard.events()) == os.terminal_size((111, 33))
    assert signal.getsignal(signal.SIGWINCH) == handler


def test_a_terminal_whose_window_was_closed_ends_the_keys() -> None:
    person, program = pty.openpty()
    keyboard = Keyboard(program)
    with keyboard.raw():
        os.close(person)
        assert next(keyboard.events()) == b""
    os.close(program)


def test_a_hidden_line_is_not_echoed_and_the_echo_comes_back(keys: tuple[int, int]) -> None:
    _, program = keys
    with os.fdopen(os.dup(program), encoding="utf-8") as reader:
        with without_echo(reader):
            assert not termios.tcgetattr(program)[3] & termios.ECHO
        assert termios.tcgetattr(program)[3] & termios.ECHO
