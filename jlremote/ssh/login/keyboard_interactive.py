"""The keyboard-interactive method: the server's prompts and their answers."""

from __future__ import annotations

import re

from jlremote.errors import Authentication
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.login.credentials import Credentials, password_account
from jlremote.ssh.login.user_authentication import Challenge, Outcome

_ASKS_PASSWORD = re.compile(r"pass\s?word|passwort|mot de passe|contraseña", re.IGNORECASE)
_ASKS_ONCE = re.compile(r"one.?time|code|token|otp|verification|new|retype", re.IGNORECASE)
_MOST_REPEATS = 3


class KeyboardInteractive:
    """Answers the prompts of one attempt: a remembered password by itself, others by asking.

    Attributes:
        answers: the answers so far, in order.
    """

    def __init__(self, destination: Destination, credentials: Credentials, *, first: bool) -> None:
        self.answers: list[str] = []
        self._destination = destination
        self._credentials = credentials
        self._account = password_account(destination)
        self._remembered = credentials.remembered(self._account) if first else None
        self._password: str | None = None
        self._said: list[str] = [] if first else ["the server refused that"]

    def answer(self, challenge: Challenge) -> tuple[str, ...]:
        """Return the answers to one round of prompts; a round without any only informs."""
        self._said += [
            words for words in (challenge.title, challenge.instructions) if words.strip()
        ]
        start = len(self.answers)
        for prompt, echo in challenge.prompts:
            self.answers.append(self._one(prompt, echo=echo))
        return tuple(self.answers[start:])

    def ended(self, outcome: Outcome) -> None:
        """Note how the attempt ended; which of several answers was wrong is not known."""
        if outcome.success or outcome.partial:
            if self._password is not None:
                self._credentials.was_right(self._account, self._password)
        elif len(self.answers) == 1:
            self._credentials.was_wrong(self._account, self.answers[0])
        elif self.answers:
            self._credentials.refused.add(self._account, *self.answers)

    def _one(self, prompt: str, *, echo: bool) -> str:
        password = not echo and _asks_password(prompt)
        if password and self._remembered is not None:
            answer, self._remembered = self._remembered, None
            self._password = answer
            return answer
        answer = self._ask(prompt, echo=echo, password=password)
        if password:
            self._password = answer
        return answer

    def _ask(self, prompt: str, *, echo: bool, password: bool) -> str:
        """Ask until the server has not refused the answer at this point before."""
        for _ in range(_MOST_REPEATS):
            said = "".join(f"{words.strip()}\n" for words in self._said)
            self._said = []
            text = f"{said}({self._destination.account}) {prompt.strip()}"
            answer = self._credentials.ask("password" if password else "code", text, echo=echo)
            if not self._credentials.refused.holds(self._account, *self.answers, answer):
                return answer
            self._said = ["that was refused before, so it is not sent again"]
        raise _gave_up(self._destination)


def _asks_password(prompt: str) -> bool:
    return bool(_ASKS_PASSWORD.search(prompt)) and not _ASKS_ONCE.search(prompt)


def _gave_up(destination: Destination) -> Authentication:
    return Authentication(
        f"cannot log in as `{destination.account}`: the server refused these answers before",
        hint=f"try `ssh {destination.host}` with the same answers",
    )
