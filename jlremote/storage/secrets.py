"""Secrets in the operating system's keychain, which may be missing, locked or hang."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

SERVICE = "jlremote"
# The user may have to unlock the keychain in a dialog; a login must not wait longer than this.
DEADLINE = 10.0

_LOG = logging.getLogger("jlremote.storage")
_Result = TypeVar("_Result")
# keyrings.alt keeps secrets in files, some of them in plain text, and takes any priority.
_NOT_A_KEYCHAIN = ("keyrings.alt", "keyring.backends.fail", "keyring.backends.null")


class Secrets:
    """A keychain whose methods never raise, and end after `deadline` seconds.

    Attributes:
        name: the keychain's name in messages.
        present: whether it answered the last time; a locked one does not.
    """

    def __init__(self, backend: Any, *, deadline: float = DEADLINE) -> None:
        self.present = True
        self.name = str(getattr(type(backend), "name", type(backend).__name__))
        self._backend = backend
        self._deadline = deadline
        self._stuck: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"Secrets({self.name!r})"

    def get(self, account: str) -> str | None:
        """Return an account's secret, `None` for none or while the keychain is locked."""
        found = self._in_time(lambda: self._backend.get_password(SERVICE, account), None)
        return found if isinstance(found, str) else None

    def set(self, account: str, secret: str) -> bool:
        """Store a secret; return whether reading it back gave the same."""

        def store() -> bool:
            self._backend.set_password(SERVICE, account, secret)
            return bool(self._backend.get_password(SERVICE, account) == secret)

        kept = self._in_time(store, default=False)
        if not kept:
            self.delete(account)
        return kept

    def delete(self, account: str) -> bool:
        """Delete a secret; return whether there was one and it is gone now."""

        def remove() -> bool:
            if self._backend.get_password(SERVICE, account) is None:
                return False
            self._backend.delete_password(SERVICE, account)
            return self._backend.get_password(SERVICE, account) is None

        return self._in_time(remove, default=False)

    def _in_time(self, action: Callable[[], _Result], default: _Result) -> _Result:
        """Run an action in a thread; give up after the deadline, or at once while one hangs."""
        if self._stuck is not None and self._stuck.is_alive():
            return default
        results: list[_Result] = []
        thread = threading.Thread(target=_collect, args=(action, results), daemon=True)
        thread.start()
        thread.join(self._deadline)
        if thread.is_alive():
            _LOG.warning("%s gave no answer within %g s; it may be locked", self, self._deadline)
            self._stuck = thread
        self.present = bool(results)
        return results[0] if results else default


class LateSecrets:
    """The system's keychain, opened on first use, because opening takes a tenth of a second."""

    def __init__(self) -> None:
        self._opened: tuple[Secrets | None] | None = None

    @property
    def name(self) -> str:
        """The keychain's name in messages."""
        secrets = self._secrets()
        return secrets.name if secrets else "no keychain"

    @property
    def present(self) -> bool:
        """Whether there is a keychain that answers (see `Secrets.present`)."""
        secrets = self._secrets()
        return secrets is not None and secrets.present

    def get(self, account: str) -> str | None:
        """Return an account's secret (see `Secrets.get`)."""
        secrets = self._secrets()
        return secrets.get(account) if secrets else None

    def set(self, account: str, secret: str) -> bool:
        """Store a secret (see `Secrets.set`)."""
        secrets = self._secrets()
        return secrets.set(account, secret) if secrets else False

    def delete(self, account: str) -> bool:
        """Delete a secret (see `Secrets.delete`)."""
        secrets = self._secrets()
        return secrets.delete(account) if secrets else False

    def _secrets(self) -> Secrets | None:
        if self._opened is None:
            self._opened = (open_secrets(),)
        return self._opened[0]


def open_secrets(*, deadline: float = DEADLINE) -> Secrets | None:
    """Open the system's keychain; `None` without a real one, or when it does not answer."""
    found: list[Any] = []
    thread = threading.Thread(target=_collect, args=(_backend, found), daemon=True)
    thread.start()
    thread.join(deadline)
    backend = found[0] if found else None
    return Secrets(backend, deadline=deadline) if backend is not None else None


def is_real(backend: Any) -> bool:
    """Check that a keyring backend is a keychain, and not a file or a placeholder."""
    module = type(backend).__module__
    return not module.startswith(_NOT_A_KEYCHAIN) and float(type(backend).priority) >= 1


def _backend() -> Any:
    """Return the backend that keyring chooses, or the first real one of several."""
    import keyring  # costs 70 ms, and only a login needs it

    chosen = keyring.get_keyring()
    several = getattr(chosen, "backends", None)
    candidates = several if several is not None else [chosen]
    return next((backend for backend in candidates if is_real(backend)), None)


def _collect(action: Callable[[], _Result], results: list[_Result]) -> None:
    try:
        results.append(action())
    except Exception as error:  # noqa: BLE001 - backends raise errors of their system
        _LOG.info("the keychain cannot be used: %s", type(error).__name__)
