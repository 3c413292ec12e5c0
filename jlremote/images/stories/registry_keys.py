"""Keys of registries, in the laptop's keychain."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jlremote.errors import JlrError
from jlremote.images.image_names import DOCKER_HUB
from jlremote.laptop import registry_logins
from jlremote.laptop.secrets import Secrets, open_secrets

# Docker Hub in docker's settings.
_DOCKER_HUB_SERVER = "https://index.docker.io/v1/"


@dataclass(frozen=True)
class RegistryKey:
    """A user name at a registry, with its password or API key."""

    user: str
    key: str = field(repr=False)


def find(
    host: str, registries: Iterable[str], keychain: Secrets | None = None
) -> dict[str, RegistryKey]:
    """Return the keys that `jlr login HOST` has kept for a host, by registry.

    `keychain` is one that is being opened already. What it has is noted, so that it is not asked
    in vain the next time.
    """
    found: dict[str, RegistryKey] = {}
    secrets = keychain or Secrets()
    for name in _maybe_kept(host, registries):
        if secrets.is_missing:
            registry_logins.note_no_keychain(name, host)
            continue
        key = _read(secrets, _account(name, host))
        if key is not None:
            found[name] = key
        if secrets.present:  # a locked one tells nothing
            registry_logins.note(name, host, kept=key is not None)
    return found


def begin(host: str, registries: Iterable[str]) -> Secrets | None:
    """Begin to open the keychain if `find` will need it, while the host is asked."""
    return Secrets().begin() if _maybe_kept(host, registries) else None


def _maybe_kept(host: str, registries: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(registries) if registry_logins.may_be_kept(name, host)]


def latest(registry: str, user: str) -> RegistryKey | None:
    """Return the key of `user` that a registry accepted last, on any host."""
    secrets = open_secrets()
    key = None if secrets is None else _read(secrets, _account(registry))
    return key if key is not None and key.user == user else None


def check_keychain(host: str, registry: str, user: str, *options: str) -> None:
    """Check that keys can be kept, before one is typed; `options` are the command's others.

    Raises:
        JlrError: there is no keychain.
    """
    if open_secrets() is None:
        named = shlex.join(("jlr", "login", host, registry, "--username", user, *options))
        raise JlrError(
            "cannot keep the key: this machine has no keychain",
            hint=f"`{named} --keep` keeps it on the host instead",
        )


def keep(host: str, registry: str, key: RegistryKey) -> str:
    """Keep a key for a host; return the name of the keychain.

    Each host has its own entry, so that a key goes only to hosts with a login.

    Raises:
        JlrError: the keychain refuses it.
    """
    secrets = open_secrets()
    accounts = (_account(registry, host), _account(registry))
    if secrets is None or not all(secrets.set(name, _written(key)) for name in accounts):
        raise JlrError("the keychain refuses the key", hint="unlock the keychain and try again")
    registry_logins.note(registry, host, kept=True)
    return secrets.name


def forget(host: str, registry: str) -> bool:
    """Forget a host's key of a registry; return whether there was one."""
    secrets = open_secrets()
    if secrets is None:
        return False
    if not secrets.delete(_account(registry, host)):
        return False  # the latest one is of another host
    secrets.delete(_account(registry))
    registry_logins.note(registry, host, kept=False)
    return True


def docker_config(keys: Mapping[str, RegistryKey]) -> bytes:
    """Return the text of a docker `config.json` with `keys`, on one line."""
    basic = {name: base64.b64encode(_written(key).encode()) for name, key in keys.items()}
    auths = {server(name): {"auth": code.decode("ascii")} for name, code in basic.items()}
    return json.dumps({"auths": auths}).encode() + b"\n"


def server(registry: str) -> str:
    """Return the name of a registry in docker's settings."""
    return _DOCKER_HUB_SERVER if registry == DOCKER_HUB else registry


def _account(registry: str, host: str | None = None) -> str:
    return f"registry {registry}" if host is None else f"registry {registry} on {host}"


def _written(key: RegistryKey) -> str:
    return f"{key.user}:{key.key}"


def _read(secrets: Secrets, account: str) -> RegistryKey | None:
    user, colon, key = (secrets.get(account) or "").partition(":")
    return RegistryKey(user, key) if colon else None
