"""Questions at the terminal, as ssh asks them: on `/dev/tty`, not on stdin."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from jlremote.cli.keyboard import TERMINAL, typed_line, without_echo
from jlremote.errors import NeedsAuthentication
from jlremote.questions import NeverAsks, Question, unanswered
from jlremote.text import printable

_FINGERPRINT = re.compile(r"\b(?:SHA256|MD5):\S+")
_STAYS = "later ones need no login"
# The `Asker` of `--no-input`.
NO_INPUT = NeverAsks(f"run the command once without `--no-input`; {_STAYS}")


@dataclass
class Person:
    """The `Asker` of a terminal, with the spinner `paused` while a question is on the screen."""

    paused: Callable[[], AbstractContextManager[None]]
    remember: bool | None = None  # whether a secret is remembered; `None` asks

    def ask(self, question: Question) -> str:
        """Return the answer, or `yes` or `no` (`NeedsAuthentication`: no terminal, or Ctrl-D)."""
        if question.kind in ("remember", "remember-again"):
            if self.remember:
                return "yes"
            if self.remember is False or question.kind == "remember-again":
                raise NeedsAuthentication("not remembered this time")
        keys, screen = map(Path, TERMINAL)
        with contextlib.ExitStack() as stack:
            try:  # two files: Python seeks in one that is read and written, which no terminal can
                reader = stack.enter_context(keys.open(encoding="utf-8", errors="replace"))
                writer = stack.enter_context(screen.open("w", encoding="utf-8", errors="replace"))
            except OSError as failure:
                hint = f"run the command once in a terminal; {_STAYS}"
                raise unanswered(question, hint) from failure
            stack.enter_context(self.paused())
            return _answer(question, (reader, writer))


def _answer(question: Question, terminal: tuple[TextIO, TextIO]) -> str:
    prompt = printable(question.text).rstrip()
    if question.kind == "host-key":
        asked = f"{prompt} (yes/no/[fingerprint])? "
        fingerprints = [found.rstrip(".,") for found in _FINGERPRINT.findall(prompt)]
        while (typed := _line(asked, terminal, echo=True).strip()) not in fingerprints:
            if typed.lower() in ("yes", "no"):
                return typed.lower()
            asked = "Please type `yes`, `no` or the fingerprint: "
        return "yes"
    if question.kind in ("remember", "confirm"):
        try:
            typed = _line(f"{prompt} (y/N) ", terminal, echo=True)
        except NeedsAuthentication:
            if question.kind != "confirm":
                raise
            return "no"  # Ctrl-D is no yes, and the person is there
        return "yes" if typed.strip().lower() in ("y", "yes") else "no"
    return _line(f"{prompt} ", terminal, echo=question.echo)


def _line(prompt: str, terminal: tuple[TextIO, TextIO], *, echo: bool) -> str:
    reader, writer = terminal
    with contextlib.ExitStack() as stack:
        if not echo:
            stack.callback(writer.write, "\n")  # the typed one was not shown
            stack.enter_context(without_echo(reader))
        writer.write(prompt)
        writer.flush()
        typed = typed_line(reader)
    if not typed.endswith("\n"):
        writer.write("\n")
        raise NeedsAuthentication("the question was not answered", hint="run the command again")
    return typed.removesuffix("\n")
