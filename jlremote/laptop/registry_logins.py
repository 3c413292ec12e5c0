"""Which registries' keys the keychain has, without the keys.

A command that needs none does not open the keychain, which takes it 50 ms.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.laptop.record_files import NAMES, Records


@dataclass(frozen=True)
class RegistryLogin:
    """Whether the keychain has a key of a registry for a host."""

    registry: str
    host: str  # what was typed after `ssh`
    kept: bool


_RECORDS = Records("registries", RegistryLogin, ("registry", "host"), **NAMES)


def note(registry: str, host: str, *, kept: bool) -> None:
    """Note what the keychain has; what cannot be written is looked up again."""
    with suppress(JlrError):
        _RECORDS.delete_key(registry, host)  # a wrong one must not stay
        _RECORDS.save(RegistryLogin(registry, host, kept))


def note_no_keychain(registry: str, host: str) -> None:
    """Note that there is no key, as there is no keychain; a key noted before may be back later."""
    if _RECORDS.find(registry, host) is None:
        note(registry, host, kept=False)


def may_be_kept(registry: str, host: str) -> bool:
    """Return whether the keychain has a key, or has not been asked yet."""
    known = _RECORDS.find(registry, host)
    return known is None or known.kept
