"""Which registries' keys the keychain has, without the keys.

A command that needs none does not open the keychain, which takes it 50 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.storage.records import NAMES, Records


@dataclass(frozen=True)
class RegistryLogin:
    """A key of a registry that was kept for a host."""

    registry: str
    host: str  # what was typed after `ssh`


_RECORDS = Records("registries", RegistryLogin, ("registry", "host"), **NAMES)


def save(registry: str, host: str) -> None:
    """Remember that the keychain has a key."""
    _RECORDS.save(RegistryLogin(registry, host))


forget = _RECORDS.delete_key


def is_kept(registry: str, host: str) -> bool:
    """Return whether the keychain may have a key."""
    return _RECORDS.find(registry, host) is not None
