"""Text of a host, an image or a page reaches the terminal only without what acts on a terminal."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from jlremote.cli import boundary
from jlremote.cli.screen.program_output import Filter, JobOutput
from jlremote.cli.screen.terminal import answer, answer_json, tell
from jlremote.errors import Busy, Unreachable
from jlremote.text import printable

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4K\x07"
HOSTILE = f"a{CLIPBOARD}b\x1b[2Jc\x9b5nd\u202ee\x07f"
HARMLESS = "abcdef"
ACTING = set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize(
    "error",
    [
        Unreachable(f"the proxy answered: {HOSTILE}", hint=f"try {HOSTILE}"),
        Busy(f"`dgx/c` has busy kernels: `{HOSTILE}`", hint=f"`jlr stop {HOSTILE} --force`"),
        click.UsageError(f"No such thing: {HOSTILE}"),
    ],
)
def test_an_error_with_a_strangers_words_does_not_write_the_clipboard(
    error: Exception, capfd: pytest.CaptureFixture[str]
) -> None:
    """They are an HTTP reason, a relay's stderr, an SSH server's banner, a notebook's name."""
    told = boundary._in_our_words(error) if isinstance(error, click.ClickException) else error
    boundary.explain(told)
    shown = capfd.readouterr().err
    assert HARMLESS in shown
    assert not set(shown) & ACTING


@pytest.mark.parametrize("argv", [("stop", HOSTILE), ("start", "dgx", f"--{HOSTILE}"), (HOSTILE,)])
def test_ones_own_arguments_are_shown_without_their_escapes(argv: tuple[str, ...]) -> None:
    words = (sys.executable, "-m", "jlremote", "--no-input", *argv)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode in (2, 6), done.stderr[:7]) == (True, "error: ")
    assert not set(done.stderr) & ACTING


def test_all_that_is_printed_goes_through_the_one_door(capfd: pytest.CaptureFixture[str]) -> None:
    answer(HOSTILE)
    tell(HOSTILE)
    answer_json({"name": f"{HOSTILE}\x7f"})
    shown = capfd.readouterr()
    assert shown.err == f"{HARMLESS}\n"
    assert shown.out.startswith(f"{HARMLESS}\n{{")
    assert not set(shown.out) & {*ACTING, "\x7f"}
    assert "\\u001b]52;c;" in shown.out, "JSON keeps the name, in ASCII"


def test_no_other_module_of_the_command_line_prints() -> None:
    """Else the door would be one of several."""
    here = Path("jlremote/cli")
    printing = {
        path.relative_to(here).as_posix()
        for path in here.rglob("*.py")
        if any(words in path.read_text() for words in ("click.echo(", " print("))
    }
    assert printing == {"screen/terminal.py"}


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_a_job_on_a_terminal_keeps_colours_and_progress_but_no_other_sequence(piece: int) -> None:
    whole = f"\x1b[1;31mred\x1b[0m 10%\r20%\x1b[K\x1b[A\x08é {HOSTILE}\x1b[6n\x1b]0;t\x1b\\end\n"
    data, shown = whole.encode(), b""
    harmless = Filter()
    for at in range(0, len(data), piece):
        shown += harmless.harmless(data[at : at + piece])
    assert shown.decode().startswith("\x1b[1;31mred\x1b[0m 10%\r20%\x1b[K\x1b[A\x08é a")
    rest = shown.decode().partition("é ")[2]
    assert not set(rest) & ACTING
    assert rest.endswith("end\n")


def test_a_job_into_a_pipe_keeps_every_byte(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    output, whole = JobOutput(), f"{HOSTILE}\n".encode() + b"\xff\xfe\x00"
    output.show("stdout", whole)
    output.show("stderr", whole)
    assert capfdbinary.readouterr() == (whole, whole)


def test_a_sequence_that_never_ends_holds_back_no_output() -> None:
    harmless, sent = Filter(), b"\x1b]52;c;" + b"A" * 10_000
    shown = b"".join(harmless.harmless(sent[at : at + 100]) for at in range(0, len(sent), 100))
    assert shown.count(b"A") > 5_000
    assert harmless.harmless(b"\nnext\n").endswith(b"\nnext\n")


@pytest.mark.parametrize("opener", ["\x1b]", "\x9d", "\x90", "\x1b[", "\x9b", "\x1b", "\x1bP0"])
def test_a_megabyte_of_unended_sequences_is_cleaned_at_once(opener: str) -> None:
    text = opener * (1_000_000 // len(opener))
    began = time.process_time()
    printable(text)
    assert time.process_time() - began < 2.0, "it was 25 minutes"
