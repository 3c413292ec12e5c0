"""Secrets in the operating system's keychain, which may be missing, locked or hang."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

SERVICE = "jlremote"
# The user may have to unlock the keychain in a dialog; a login must not wait longer than this.
DEADLINE = 10.0

_LOG = logging.getLogger("jlremote.laptop")
_Result = TypeVar("_Result")
# keyrings.alt keeps secrets in files, some of them in plain text, and takes any priority.
_NOT_A_KEYCHAIN = ("keyrings.alt", "keyring.backends.fail", "keyring.backends.null")


class Secrets:
    """The keychain. Its methods never raise, and end after `deadline` seconds.

    It is opened on first use, because that takes a tenth of a second, unless a backend is given.
    """

    def __init__(self, backend: Any = None, *, deadline: float = DEADLINE) -> None:
        if backend is not None:
            self._keychain = backend
        self._answers = True
        self._deadline = deadline
        self._stuck: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"Secrets({self.name!r})"

    @property
    def name(self) -> str:
        """The keychain's name in messages."""
        kind = type(self._keychain)
        return "no keychain" if kind is type(None) else str(getattr(kind, "name", kind.__name__))

    @property
    def present(self) -> bool:
        """Whether there is a keychain, and it answered the last time; a locked one does not."""
        return self._keychain is not None and self._answers

    def get(self, account: str) -> str | None:
        """Return an account's secret, `None` for none or while the keychain is locked."""
        secret = self._in_time(lambda keychain: keychain.get_password(SERVICE, account), None)
        return secret if isinstance(secret, str) else None

    def set(self, account: str, secret: str) -> bool:
        """Store a secret; return whether reading it back gave the same."""

        def store(keychain: Any) -> bool:
            keychain.set_password(SERVICE, account, secret)
            return bool(keychain.get_password(SERVICE, account) == secret)

        kept = self._in_time(store, default=False)
        if not kept:
            self.delete(account)
        return kept

    def delete(self, account: str) -> bool:
        """Delete a secret; return whether there was one and it is gone now."""

        def remove(keychain: Any) -> bool:
            if keychain.get_password(SERVICE, account) is None:
                return False
            keychain.delete_password(SERVICE, account)
            return keychain.get_password(SERVICE, account) is None

        return self._in_time(remove, default=False)

    def _in_time(self, action: Callable[[Any], _Result], default: _Result) -> _Result:
        keychain = self._keychain
        if keychain is None or (self._stuck is not None and self._stuck.is_alive()):
            return default
        results, thread = _started(lambda: action(keychain), self._deadline)
        if thread.is_alive():
            _LOG.warning("%s gave no answer within %g s; it may be locked", self, self._deadline)
            self._stuck = thread
        self._answers = bool(results)
        return results[0] if results else default

    @cached_property
    def _keychain(self) -> Any:
        backends, _ = _started(_backend, self._deadline)
        return backends[0] if backends else None


def open_secrets(*, deadline: float = DEADLINE) -> Secrets | None:
    """Open the system's keychain; `None` without a real one, or when it does not answer."""
    secrets = Secrets(deadline=deadline)
    return secrets if secrets.present else None


def is_real(backend: Any) -> bool:
    """Check that a keyring backend is a keychain, and not a file or a placeholder."""
    module = type(backend).__module__
    return not module.startswith(_NOT_A_KEYCHAIN) and float(type(backend).priority) >= 1


def _backend() -> Any:
    if sys.platform != "darwin":
        # keyring loads the backends of all systems, and that of macOS searches for its libraries:
        # ctypes runs gcc and ld for it, a tenth of a second. `None` makes its import fail at once.
        modules: dict[str, Any] = sys.modules
        modules.setdefault("keyring.backends.macOS.api", None)
    import keyring  # costs 70 ms, and only a login needs it

    chosen = keyring.get_keyring()
    several = getattr(chosen, "backends", None)
    candidates = several if several is not None else [chosen]
    return next((backend for backend in candidates if is_real(backend)), None)


def _started(
    action: Callable[[], _Result], deadline: float
) -> tuple[list[_Result], threading.Thread]:
    """Run an action in a thread; return its result, if it came in time, and the thread."""
    results: list[_Result] = []

    def collect() -> None:
        try:
            results.append(action())
        except Exception as error:  # noqa: BLE001 - backends raise errors of their system
            _LOG.info("the keychain cannot be used: %s", type(error).__name__)

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(deadline)
    return results, thread
