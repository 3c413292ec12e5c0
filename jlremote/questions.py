"""What only a person can answer, and who can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

QuestionKind = Literal["host-key", "passphrase", "password", "code", "remember", "remember-again"]


@dataclass(frozen=True)
class Question:
    """One thing that only a person can answer.

    Attributes:
        kind: what is asked. `host-key` and `remember` want `yes` or `no`, the others a secret.
            `remember-again` is `remember` for somebody who said no before: it is answered by who
            said beforehand what he wants, and never put to the person.
        text: the prompt, already free of control characters; may have several lines.
        echo: whether the answer may be seen while it is typed.
    """

    kind: QuestionKind
    text: str
    echo: bool = False


class Asker(Protocol):
    """Whoever can put a question to the person."""

    def ask(self, question: Question) -> str:
        """Return the answer.

        Raises:
            NeedsAuthentication: nobody is there to be asked, or the person turned away.
        """
        ...
