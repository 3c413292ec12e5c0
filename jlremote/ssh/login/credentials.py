"""The secrets of a login: remembered or asked for, never one that was refused before."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from jlremote.errors import NeedsAuthentication
from jlremote.questions import Asker, Question, QuestionKind
from jlremote.ssh.config.destination import Destination
from jlremote.text import printable

Remember = Literal["ask", "yes", "no"]


class Keychain(Protocol):
    """A store of secrets between logins; `laptop.secrets` has the system's. Never raises."""

    @property
    def name(self) -> str: ...  # for people
    @property
    def present(self) -> bool: ...  # whether it exists and answers, as far as is known
    def get(self, account: str) -> str | None: ...  # `None`: missing, or cannot be read now
    def set(self, account: str, secret: str) -> bool: ...  # whether that succeeded
    def delete(self, account: str) -> bool: ...  # whether there was one


def password_account(destination: Destination) -> str:
    """Return the keychain's name for a destination's password."""
    return f"password {destination.account}"


def sudo_account(destination: Destination) -> str:
    """Return the keychain's name for a destination's password of `sudo`."""
    return f"sudo-password {destination.account}"


def passphrase_account(path: Path) -> str:
    """Return the keychain's name for a key file's passphrase."""
    return f"passphrase {path}"


def _declined(account: str) -> str:
    return f"declined {account}"


class RefusedSecrets:
    """The answers that servers refused in the life of this process, as salted digests."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(16)
        self._digests: set[bytes] = set()

    def add(self, account: str, *answers: str) -> None:
        self._digests.add(self._digest(account, answers))

    def holds(self, account: str, *answers: str) -> bool:
        return self._digest(account, answers) in self._digests

    def _digest(self, account: str, answers: tuple[str, ...]) -> bytes:
        return hashlib.blake2b(repr((account, answers)).encode(), key=self._salt).digest()


REFUSED = RefusedSecrets()


@dataclass
class Credentials:
    """The sources of secrets during one login, and the secrets that were right."""

    asker: Asker  # asks the person
    keychain: Keychain | None = None  # keeps secrets, `None` for none
    remember: Remember = "ask"  # whether a secret that was right is kept: `ask` asks once
    refused: RefusedSecrets = field(default_factory=lambda: REFUSED)  # must not be sent again
    _right: dict[str, str] = field(default_factory=dict, repr=False)

    def remembered(self, account: str) -> str | None:
        """Return a kept secret, unless it was refused."""
        secret = self.keychain.get(account) if self.keychain else None
        return None if secret is None or self.refused.holds(account, secret) else secret

    def ask(self, kind: QuestionKind, text: str, *, echo: bool = False) -> str:
        """Ask the person; `NeedsAuthentication` if that cannot be done."""
        return self.asker.ask(Question(kind, printable(text), echo=echo))

    def candidates(self, account: str, question: str, tries: int, refused: str) -> Iterator[str]:
        """Yield the remembered password, then up to `tries` typed ones, but none that was refused.

        `refused` stands before the question when it is asked again.
        """
        remembered = self.remembered(account)
        if remembered is not None:
            yield remembered
        note = ""
        for _ in range(tries):
            password = self.ask("password", f"{note}{question}")
            if not password:
                return
            if self.refused.holds(account, password):
                note = "that password was refused before, so it is not sent again\n"
                continue
            note = f"{refused}\n"
            yield password

    def was_right(self, account: str, secret: str) -> None:
        """Note a right secret; `keep` keeps it if the person wants that."""
        self._right[account] = secret

    def was_wrong(self, account: str, secret: str) -> None:
        """Never use a secret again, and delete it from the keychain."""
        self.refused.add(account, secret)
        if self.keychain is not None and self.keychain.get(account) == secret:
            self.keychain.delete(account)

    def keep(self) -> None:
        """Keep the right secrets, if the person wants that; no error here ends the login."""
        right, self._right = self._right, {}
        keychain = self.keychain
        if not right or keychain is None or self.remember == "no" or not keychain.present:
            return
        with contextlib.suppress(NeedsAuthentication):
            for account, secret in right.items():
                if keychain.get(account) != secret:
                    self._keep_one(keychain, account, secret)

    def _keep_one(self, keychain: Keychain, account: str, secret: str) -> None:
        if keychain.get(account) is not None:  # the kept one is wrong, and would be refused again
            keychain.delete(account)
        thing, _, owner = account.partition(" ")
        question = f"keep the {thing.replace('-', ' ')} of {owner} in {keychain.name}?"
        declined = keychain.get(_declined(account)) is not None
        kind: QuestionKind = "remember-again" if declined else "remember"
        yes = {"y", "yes"}
        if self.remember == "yes" or self.ask(kind, question, echo=True).strip().lower() in yes:
            keychain.delete(_declined(account))
            keychain.set(account, secret)
        else:
            keychain.set(_declined(account), "yes")


def forget(destination: Destination, keychain: Keychain) -> tuple[str, ...]:
    """Delete all secrets of a destination and its jump hosts; return the accounts."""
    accounts: list[str] = []
    hop: Destination | None = destination
    while hop is not None:
        accounts += [password_account(hop), sudo_account(hop)]
        accounts += [passphrase_account(path) for path in hop.login.identity_files]
        hop = hop.jump
    for account in accounts:
        keychain.delete(_declined(account))
    return tuple(account for account in accounts if keychain.delete(account))
