"""The login on one connection: the methods in ssh's order, until the server accepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from jlremote.errors import Authentication
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.login.agent import Agent
from jlremote.ssh.login.credentials import Credentials, password_account
from jlremote.ssh.login.identities import gather
from jlremote.ssh.login.keyboard_interactive import KeyboardInteractive
from jlremote.ssh.login.public_keys import PublicKeys
from jlremote.ssh.login.user_authentication import Outcome, PasswordExpired, UserAuthentication

_SECRET = frozenset({"password", "keyboard-interactive"})


def log_in(
    wire: UserAuthentication,
    destination: Destination,
    credentials: Credentials,
    agent: Agent | None,
) -> None:
    """Log in.

    Raises:
        Authentication: the server accepts none of our credentials.
        NeedsAuthentication: a person must answer and cannot be asked; passed on from the asker.
    """
    LoginAttempt(wire, destination, credentials, agent).run()


class LoginAttempt:
    """One login: the methods that are left, and those that were tried."""

    def __init__(
        self,
        wire: UserAuthentication,
        destination: Destination,
        credentials: Credentials,
        agent: Agent | None,
    ) -> None:
        self._wire = wire
        self._destination = destination
        self._credentials = credentials
        self._keys = PublicKeys(wire, destination, credentials, agent)
        self._tried: list[str] = []

    def run(self) -> None:
        """Try the methods as ssh does: a partial success permits all of them again."""
        self._wire.begin()
        outcome = self._wire.none()
        attempts = self._fresh()
        while not outcome.success:
            method = next((name for name in attempts if name in outcome.methods), None)
            if method is None:
                raise self._refusal(outcome.methods)
            answer = next(attempts[method], None)
            if answer is None:
                del attempts[method]
                continue
            self._tried.append(method)
            outcome = answer
            if outcome.partial:
                attempts = self._fresh()
        self._credentials.keep()

    def _fresh(self) -> dict[str, Iterator[Outcome]]:
        methods: dict[str, Callable[[], Iterator[Outcome]]] = {
            "publickey": lambda: self._keys.attempts(
                gather(self._destination.login, self._keys.agent)
            ),
            "keyboard-interactive": self._interactive,
            "password": self._passwords,
        }
        allowed = {"publickey"} if self._destination.login.batch else set(methods)
        return {
            name: methods[name]() for name in self._destination.login.methods if name in allowed
        }

    def _passwords(self) -> Iterator[Outcome]:
        account = password_account(self._destination)
        text = f"password of {self._destination.account}:"
        tries = self._destination.login.prompts
        refused = "the server refused that password"
        for password in self._credentials.candidates(account, text, tries=tries, refused=refused):
            try:
                outcome = self._wire.password(password)
            except PasswordExpired as expired:
                raise _expired(self._destination, str(expired)) from None
            except EOFError:
                if self._wire.turned_away():
                    self._credentials.was_wrong(account, password)
                raise
            if outcome.success or outcome.partial:
                self._credentials.was_right(account, password)
            else:
                self._credentials.was_wrong(account, password)
            yield outcome

    def _interactive(self) -> Iterator[Outcome]:
        for attempt in range(self._destination.login.prompts):
            conversation = KeyboardInteractive(
                self._destination, self._credentials, first=attempt == 0
            )
            try:
                outcome = self._wire.interactive(conversation.answer)
            except EOFError:
                if self._wire.turned_away():
                    conversation.ended(Outcome(success=False))
                raise
            conversation.ended(outcome)
            yield outcome
            if not conversation.answers:
                return  # the server asked nothing, so another attempt is no use

    def _refusal(self, methods: Sequence[str]) -> Authentication:
        return Authentication(
            f"cannot log in as `{self._destination.account}`: tried {self._attempts()};"
            f" the server accepts {', '.join(methods) or 'no method'}",
            hint=self._hint(methods),
        )

    def _attempts(self) -> str:
        """Return the methods that were tried, with their counts."""
        counts = Counter(self._tried)
        if "publickey" in counts:
            counts["publickey"] = len(self._keys.offered)
        things = {"publickey": "key"}
        told = [
            f"{method} ({count} {things.get(method, 'attempt')}{'s' if count > 1 else ''})"
            for method, count in counts.items()
        ]
        return ", ".join(told) or "no method that it accepts"

    def _hint(self, methods: Sequence[str]) -> str:
        login, host = self._destination.login, self._destination.host
        secret = _SECRET & set(methods)
        if self._keys.problems:
            return "; ".join(self._keys.problems)
        if _SECRET & set(self._tried):
            user = self._destination.user
            return f"check the password or code, and whether `{user}` is the user there"
        if login.batch and secret:
            return "remove `BatchMode yes` from your ssh config: it forbids to ask for a password"
        if not set(methods) & set(login.methods):
            return (
                f"your ssh config allows only {', '.join(login.methods) or 'no method'}:"
                " see `PreferredAuthentications` and `PubkeyAuthentication`"
            )
        if "publickey" in methods and not self._keys.offered:
            missing = self._missing()
            return f"no key was found{missing}: add one with `ssh-add`, or set `IdentityFile`"
        return (
            f"`ssh -v {host}` shows each step;"
            f" offered: {', '.join(dict.fromkeys(self._keys.offered)) or 'no key'}"
        )

    def _missing(self) -> str:
        """Return a note on the IdentityFile, if the config names one: it is missing."""
        named = self._destination.login.identity_files
        # Without any `IdentityFile` ssh looks for half a dozen, which need not exist.
        return f", and `{named[0]}` does not exist" if len(named) == 1 else ""


def _expired(destination: Destination, words: str) -> Authentication:
    return Authentication(
        f"the password of `{destination.account}` has expired{f': {words}' if words else ''}",
        hint=f"change it with `ssh {destination.host}`",
    )
