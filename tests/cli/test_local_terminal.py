"""The local end of `jlr shell`: escapes, output and piped input."""

from __future__ import annotations

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


def test_bytes_of_the_host_reach_both_streams_unchanged(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
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


def test_piped_input_has_no_escapes_and_no_terminal() -> None:
    done = python(TYPED, input=b"~.\n~~\xff", stdout=subprocess.PIPE)
    assert done.stdout == b"None [b'~.\\n~~\\xff', b'']\n"


def test_a_closed_stdin_is_an_empty_input() -> None:
    closed = "import os; os.close(0)\n"
    done = python(closed + TYPED, input=b"", stdout=subprocess.PIPE)
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
