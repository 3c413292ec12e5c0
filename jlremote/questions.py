"""Questions to the user, and the askers that put them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from jlremote.errors import NeedsAuthentication
from jlremote.text import one_line, printable

QuestionKind = Literal[
    "host-key", "passphrase", "password", "code", "remember", "remember-again", "confirm", "input"
]

_NEEDS: dict[QuestionKind, str] = {
    "host-key": "the host's key is unknown and must be accepted",
    "passphrase": "a key's passphrase is needed",
    "password": "a password is needed",
    "code": "a one-time code is needed",
    "remember": "a yes or no is needed on whether to remember it",
    "remember-again": "a yes or no is needed on whether to remember it",
    "confirm": "a question must be answered",
    "input": "the code waits for input",
}


@dataclass(frozen=True)
class Question:
    """A question to the user."""

    # what is asked. `host-key`, `remember` and `confirm` (before something is lost) want `yes` or
    # `no`, `input` a line for a cell, the others a secret. `remember-again` is `remember` after an
    # earlier no: an answer that was given beforehand counts, and the user is not asked
    kind: QuestionKind
    text: str  # the prompt, already free of control characters; may have several lines
    echo: bool = False  # whether the answer may be seen while it is typed


class Asker(Protocol):
    """The way to put a question to the user."""

    def ask(self, question: Question) -> str:
        """Return the answer; raise `NeedsAuthentication` if none was given, or can be."""


@dataclass(frozen=True)
class NeverAsks:
    """The `Asker` of background work, lists and `--no-input`; `hint` says what to do instead."""

    hint: str
    obeys: bool = False  # whether no link is begun for it that `jlr disconnect` has ended

    def ask(self, question: Question) -> str:
        """Raise `NeedsAuthentication`."""
        raise unanswered(question, self.hint)


def unanswered(question: Question, hint: str) -> NeedsAuthentication:
    """Return the error for a question that could not be put to the user."""
    *facts, prompt = printable(question.text).strip().splitlines() or [""]
    # The facts about a host key stand above the question itself.
    asked = " ".join(facts) if question.kind == "host-key" and facts else prompt
    needs = _NEEDS[question.kind]
    return NeedsAuthentication(
        f"{needs}, and jlr cannot ask: {one_line(asked).rstrip(': ?')}", hint=hint
    )
