"""The login on one connection: the methods in ssh's order, until the server accepts."""

from __future__ import annotations

import contextlib
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jlremote.errors import Authentication
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.login.agent import Agent, UnusableKey
from jlremote.ssh.login.credentials import Credentials, passphrase_account, password_account
from jlremote.ssh.login.identities import (
    Identity,
    PassphraseNeeded,
    PrivateKey,
    algorithms_for,
    gather,
    load,
    sign,
)
from jlremote.ssh.login.user_authentication import Challenge, Outcome, UserAuthentication
from jlremote.ssh.trust.host_certificates import public_blob
from jlremote.text import one_line

_LOG = logging.getLogger("jlremote.ssh")
_SHOWN = 200
# PAM's words about an account, in the answer to a login that was right.
_OF_THE_ACCOUNT = re.compile(r"expired|locked|disabled|administrator", re.IGNORECASE)
_SECRET = frozenset({"password", "keyboard-interactive"})
_ASKS_PASSWORD = re.compile(r"pass\s?word|passwort|mot de passe|contraseña", re.IGNORECASE)
_ASKS_ONCE = re.compile(r"one.?time|code|token|otp|verification|new|retype", re.IGNORECASE)


@dataclass
class Login:
    """One login; a partial success permits all methods again, as in ssh."""

    wire: UserAuthentication
    destination: Destination
    credentials: Credentials
    agent: Agent | None
    tried: list[str] = field(default_factory=list)  # the method of each attempt
    offered: list[str] = field(default_factory=list)  # labels of keys that were asked about
    problems: list[str] = field(default_factory=list)  # why keys are of no use, a sentence each
    loaded: dict[Path, PrivateKey] = field(default_factory=dict)
    done: set[bytes] = field(default_factory=set)  # keys that were right

    def run(self) -> None:
        """Log in; `Authentication` if the server accepts none of our credentials.

        What the asker raises is passed on, such as `NeedsAuthentication`.
        """
        outcome = self.wire.begin()
        left = self._attempts()
        while not outcome.success:
            method = next((name for name in left if name in outcome.methods), None)
            if method is None:
                raise self._refusal(outcome.methods)
            answer = next(left[method], None)
            if answer is None:
                del left[method]
                continue
            self.tried.append(method)
            outcome = answer
            if outcome.partial:
                left = self._attempts()
        self.credentials.keep()

    def _attempts(self) -> dict[str, Iterator[Outcome]]:
        login = self.destination.login
        methods: dict[str, Callable[[], Iterator[Outcome]]] = {
            "publickey": self._keys,
            "keyboard-interactive": self._interactive,
            "password": self._passwords,
        }
        allowed = {"publickey"} if login.batch else methods.keys()
        return {name: methods[name]() for name in login.methods if name in allowed}

    def _keys(self) -> Iterator[Outcome]:
        for identity in gather(self.destination.login, self.agent):
            try:
                outcome = self._offer(identity)
            except UnusableKey as problem:
                _LOG.info("key %s is not used: %s", identity.label, problem)
                self.problems.append(f"key {identity.label}: {problem}")
                continue
            if outcome is not None:
                yield outcome

    def _offer(self, identity: Identity) -> Outcome | None:
        blob = identity.blob
        asked_first = blob is not None
        if blob is None:  # an old format whose public half is encrypted as well
            assert identity.path is not None
            blob = public_blob(self._private(identity.path).public_key())
        algorithm = algorithms_for(
            blob, self.destination.algorithms.public_keys, self.wire.server_signatures()
        )
        if algorithm is None or blob in self.done:
            return None
        self.offered.append(identity.label)
        refused = self.wire.wants_key(algorithm, blob) if asked_first else None
        if refused is not None:
            return refused
        outcome = self.wire.key(algorithm, blob, lambda data: self._sign(identity, data, algorithm))
        if outcome.partial:
            self.done.add(blob)  # a server that wants two keys wants a different one now
        return outcome

    def _sign(self, identity: Identity, data: bytes, algorithm: str) -> bytes:
        if identity.agent is not None:
            return identity.agent.sign(identity.held, data, algorithm)
        assert identity.path is not None
        return sign(self._private(identity.path), data, algorithm)

    def _private(self, path: Path) -> PrivateKey:
        if path not in self.loaded:
            self.loaded[path] = self._unlock(path)
        return self.loaded[path]

    def _unlock(self, path: Path) -> PrivateKey:
        """Load a key; ask for its passphrase as often as ssh does; an empty answer skips it."""
        try:
            return load(path, None)
        except PassphraseNeeded:
            account = passphrase_account(path)
            remembered = self.credentials.remembered(account)
            if remembered is not None:
                with contextlib.suppress(PassphraseNeeded):
                    return load(path, remembered)
                self.credentials.was_wrong(account, remembered)
            if self.destination.login.batch:
                raise
        for _ in range(self.destination.login.prompts):
            passphrase = self.credentials.ask("passphrase", f"passphrase of the key {path}:")
            if not passphrase:
                break
            with contextlib.suppress(PassphraseNeeded):
                key = load(path, passphrase)
                self.credentials.was_right(account, passphrase)
                return key
        raise UnusableKey("its passphrase was not given")

    def _passwords(self) -> Iterator[Outcome]:
        account = password_account(self.destination)
        question = f"password of {self.destination.account}:"
        tries, refused = self.destination.login.prompts, "the server refused that password"
        for password in self.credentials.candidates(account, question, tries, refused):
            try:
                outcome = self.wire.password(password)
            except EOFError:
                if self.wire.turned_away():
                    self.credentials.was_wrong(account, password)
                raise
            if outcome.expired is not None:
                reason = f": {outcome.expired}" if outcome.expired else ""
                message = f"the password of `{self.destination.account}` has expired{reason}"
                hint = f"change it with `ssh {self.destination.host}`"
                raise Authentication(message, hint=hint)
            if outcome.success or outcome.partial:
                self.credentials.was_right(account, password)
            else:
                self.credentials.was_wrong(account, password)
            yield outcome

    def _interactive(self) -> Iterator[Outcome]:
        tries = left = self.destination.login.prompts
        while left > 0:
            first = left == tries
            prompts = KeyboardInteractive(self.destination, self.credentials, left, first=first)
            try:
                outcome = self.wire.interactive(prompts.answer)
            except EOFError:
                if self.wire.turned_away():
                    prompts.ended(Outcome(success=False))
                raise
            prompts.ended(outcome)
            self.wire.reasons += prompts.notices
            yield outcome
            if not prompts.answers:
                return  # the server asked nothing, so another attempt is no use
            left -= 1 + prompts.repeats

    def _refusal(self, methods: Sequence[str]) -> Authentication:
        if any(_OF_THE_ACCOUNT.search(reason) for reason in self.wire.reasons):
            return not_permitted(self.destination, self.wire.reasons)
        counts = Counter(self.tried)
        if "publickey" in counts:
            counts["publickey"] = len(self.offered)
        tried = []
        for method, count in counts.items():
            thing = "key" if method == "publickey" else "attempt"
            tried.append(f"{method} ({count} {thing}{'s' if count > 1 else ''})")
        return Authentication(
            f"cannot log in as `{self.destination.account}`:"
            f" tried {', '.join(tried) or 'no method that it accepts'};"
            f" the server accepts {', '.join(methods) or 'no method'}",
            hint=self._hint(methods),
        )

    def _hint(self, methods: Sequence[str]) -> str:
        login = self.destination.login
        if self.problems:
            return "; ".join(self.problems)
        if _SECRET & set(self.tried):
            return check_secrets(self.destination)
        if login.batch and _SECRET & set(methods):
            return "remove `BatchMode yes` from your ssh config: it forbids to ask for a password"
        if not set(methods) & set(login.methods):
            return (
                f"your ssh config allows only {', '.join(login.methods) or 'no method'}:"
                " see `PreferredAuthentications` and `PubkeyAuthentication`"
            )
        if "publickey" in methods and not self.offered:
            named = login.identity_files
            # Without any `IdentityFile` ssh looks for half a dozen, which need not exist.
            missing = f", and `{named[0]}` does not exist" if len(named) == 1 else ""
            return f"no key was found{missing}: add one with `ssh-add`, or set `IdentityFile`"
        return (
            f"`ssh -v {self.destination.host}` shows each step;"
            f" offered: {', '.join(dict.fromkeys(self.offered)) or 'no key'}"
        )


def check_secrets(destination: Destination) -> str:
    """Return what to do about passwords and codes that were refused."""
    return f"check the password or code, and whether `{destination.user}` is the user there"


def not_permitted(destination: Destination, reasons: Sequence[str]) -> Authentication:
    """Return the error for an account that may not log in, with the server's words."""
    message = f"`{destination.account}` may not log in: {one_line(' '.join(reasons))[:_SHOWN]}"
    return Authentication(message, hint=f"ask the administrator of `{destination.hostname}`")


class KeyboardInteractive:
    """Answers the prompts of one attempt: a remembered password by itself, others by asking.

    Each of `tries` is an answer that is sent, or one of the `repeats` that were refused before.
    """

    def __init__(
        self, destination: Destination, credentials: Credentials, tries: int, *, first: bool
    ) -> None:
        self.answers: list[str] = []
        self.notices: list[str] = []  # the server's texts without a question
        self.repeats = 0
        self._tries = tries
        self._destination = destination
        self._credentials = credentials
        self._account = password_account(destination)
        self._remembered = credentials.remembered(self._account) if first else None
        self._password: str | None = None
        self._unshown: list[str] = [] if first else ["the server refused that"]

    def answer(self, challenge: Challenge) -> tuple[str, ...]:
        """Return the answers to one round of prompts; a round without any only informs."""
        texts = [*filter(str.strip, (challenge.title, challenge.instructions))]
        if not challenge.prompts:
            self.notices += texts
        self._unshown += texts
        start = len(self.answers)
        for prompt, echo in challenge.prompts:  # `_one` compares with those before
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
        asks_password = _ASKS_PASSWORD.search(prompt) and not _ASKS_ONCE.search(prompt)
        if echo or not asks_password:
            return self._ask(prompt, echo=echo, kind="code")
        answer, self._remembered = self._remembered, None
        self._password = answer or self._ask(prompt, echo=False, kind="password")
        return self._password

    def _ask(self, prompt: str, *, echo: bool, kind: Literal["code", "password"]) -> str:
        """Ask until the server has not refused the answer at this point before."""
        while self.repeats < self._tries:
            before = "".join(f"{text.strip()}\n" for text in self._unshown)
            self._unshown = []
            text = f"{before}({self._destination.account}) {prompt.strip()}"
            answer = self._credentials.ask(kind, text, echo=echo)
            if not self._credentials.refused.holds(self._account, *self.answers, answer):
                return answer
            self._unshown = ["that was refused before, so it is not sent again"]
            self.repeats += 1
        message = (
            f"cannot log in as `{self._destination.account}`: the server refused these answers"
        )
        hint = f"try `ssh {self._destination.host}` with the same answers"
        raise Authentication(f"{message} answers before", hint=hint)
