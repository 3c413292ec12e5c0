"""Who are we? The methods in ssh's order, over one connection, until the server is content."""

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
    """Return once the server let us in.

    Raises:
        Authentication: it takes nothing that we have.
        NeedsAuthentication: a person is needed, and nobody is there; passed on from the asker.
    """
    LoginAttempt(wire, destination, credentials, agent).run()


class LoginAttempt:
    """One login: which methods are left, and what was tried."""

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
        """Go through the methods as ssh does: a partial success opens all of them again.

        Raises:
            Authentication: none is left.
        """
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
        ways: dict[str, Callable[[], Iterator[Outcome]]] = {
            "publickey": lambda: self._keys.attempts(
                gather(self._destination.login, self._keys.agent)
            ),
            "keyboard-interactive": self._interactive,
            "password": self._passwords,
        }
        quiet = {"publickey"} if self._destination.login.batch else set(ways)
        return {name: ways[name]() for name in self._destination.login.methods if name in quiet}

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
                return  # the server asked nothing, so asking again changes nothing

    def _refusal(self, methods: Sequence[str]) -> Authentication:
        return Authentication(
            f"`{self._destination.account}` was not let in: tried {self._story()};"
            f" the server takes {', '.join(methods) or 'no method'}",
            hint=self._advice(methods),
        )

    def _story(self) -> str:
        """Return what was tried and how often."""
        counts = Counter(self._tried)
        if "publickey" in counts:
            counts["publickey"] = len(self._keys.offered)
        things = {"publickey": "key"}
        told = [
            f"{method} ({count} {things.get(method, 'attempt')}{'s' if count > 1 else ''})"
            for method, count in counts.items()
        ]
        return ", ".join(told) or "nothing that it takes"

    def _advice(self, methods: Sequence[str]) -> str:
        login, host = self._destination.login, self._destination.host
        secret = _SECRET & set(methods)
        if self._keys.problems:
            return "; ".join(self._keys.problems)
        if _SECRET & set(self._tried):
            user = self._destination.user
            return f"was it the right password or code, and is `{user}` the right user there?"
        if login.batch and secret:
            return "a password would do, and `BatchMode yes` in your ssh config forbids to ask"
        if not set(methods) & set(login.methods):
            return (
                f"your ssh config allows only {', '.join(login.methods) or 'no method'}:"
                " see `PreferredAuthentications`, `PubkeyAuthentication` and their kin"
            )
        if "publickey" in methods and not self._keys.offered:
            return (
                f"no key was found{self._missing()}: add one to your agent, or set `IdentityFile`"
            )
        return (
            f"does `ssh {host}` get in? `ssh -v {host}` shows each step;"
            f" offered: {', '.join(dict.fromkeys(self._keys.offered)) or 'no key'}"
        )

    def _missing(self) -> str:
        """Return the one file that the config names and that is not there."""
        named = self._destination.login.identity_files
        # Without any `IdentityFile` ssh looks for half a dozen, and nobody misses those.
        return f", and `{named[0]}` is not there" if len(named) == 1 else ""


def _expired(destination: Destination, words: str) -> Authentication:
    return Authentication(
        f"the password of `{destination.account}` has expired{f': {words}' if words else ''}",
        hint=f"change it with `ssh {destination.host}`",
    )
