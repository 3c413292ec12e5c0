"""Keys of registries: in the laptop's keychain, and on a host only as long as they are used."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jlremote.errors import JlrError
from jlremote.images.image_names import DOCKER_HUB
from jlremote.storage.secrets import Secrets, open_secrets

# What docker's own config file calls Docker Hub.
_DOCKER_HUB_SERVER = "https://index.docker.io/v1/"


@dataclass(frozen=True)
class RegistryKey:
    """What a registry knows somebody by."""

    user: str
    key: str = field(repr=False)


def find(host: str, registries: Iterable[str]) -> dict[str, RegistryKey]:
    """Return the keys that `jlr login HOST` has kept for a host, by registry."""
    secrets = open_secrets()
    if secrets is None:
        return {}
    found = {name: _read(secrets, _account(name, host)) for name in dict.fromkeys(registries)}
    return {name: key for name, key in found.items() if key is not None}


def latest(registry: str, user: str) -> RegistryKey | None:
    """Return the key of `user` that a registry accepted last, for whichever host that was."""
    secrets = open_secrets()
    key = None if secrets is None else _read(secrets, _account(registry))
    return key if key is not None and key.user == user else None


def check_keychain() -> None:
    """Find out that keys can be kept before somebody types one.

    Raises:
        JlrError: there is no keychain.
    """
    if open_secrets() is None:
        raise JlrError(
            "there is no keychain on this machine to keep the key in",
            hint="`--keep` leaves it on the host instead, in docker's own settings there",
        )


def keep(host: str, registry: str, key: RegistryKey) -> str:
    """Keep a key for a host; return what the keychain is called.

    A key goes to no host that nobody logged in for, so each has an entry of its own.

    Raises:
        JlrError: the keychain does not take it.
    """
    secrets = open_secrets()
    accounts = (_account(registry, host), _account(registry))
    if secrets is None or not all(secrets.set(name, _written(key)) for name in accounts):
        raise JlrError("the keychain does not keep the key", hint="it may be locked; try again")
    return secrets.name


def forget(host: str, registry: str) -> bool:
    """Forget a registry's key; return whether there was one."""
    secrets = open_secrets()
    if secrets is None:
        return False
    gone = [secrets.delete(name) for name in (_account(registry, host), _account(registry))]
    return any(gone)


def docker_config(keys: Mapping[str, RegistryKey]) -> bytes:
    """Return the text of a docker `config.json` that holds `keys`, on one line."""
    auths = {server(name): {"auth": _basic(key)} for name, key in keys.items()}
    return json.dumps({"auths": auths}).encode() + b"\n"


def server(registry: str) -> str:
    """Return what docker's settings call a registry."""
    return _DOCKER_HUB_SERVER if registry == DOCKER_HUB else registry


def _basic(key: RegistryKey) -> str:
    return base64.b64encode(_written(key).encode()).decode("ascii")


def _account(registry: str, host: str | None = None) -> str:
    return f"registry {registry}" if host is None else f"registry {registry} on {host}"


def _written(key: RegistryKey) -> str:
    return f"{key.user}:{key.key}"


def _read(secrets: Secrets, account: str) -> RegistryKey | None:
    user, colon, key = (secrets.get(account) or "").partition(":")
    return RegistryKey(user, key) if colon else None
