"""The rules for one host in its ssh settings: host keys, credentials, algorithms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from jlremote.errors import Usage
from jlremote.ssh.config.ssh_settings import SshSettings
from jlremote.ssh.config.tokens import TokenValues, expand_path
from jlremote.untrusted import count

StrictHostKeyChecking = Literal["yes", "no", "ask", "accept-new"]

_STRICT: dict[str, StrictHostKeyChecking] = {
    "yes": "yes",
    "true": "yes",
    "no": "no",
    "off": "no",
    "false": "no",
    "accept-new": "accept-new",
}
# Each method of a login in ssh's order, with the setting that switches it off.
_SWITCHES = {
    "publickey": "pubkeyauthentication",
    "keyboard-interactive": "kbdinteractiveauthentication",
    "password": "passwordauthentication",
}


@dataclass(frozen=True)
class Algorithms:
    """The algorithms that the settings allow; `None` where they name none."""

    ciphers: tuple[str, ...] | None = None
    macs: tuple[str, ...] | None = None
    key_exchange: tuple[str, ...] | None = None
    host_keys: tuple[str, ...] | None = None
    public_keys: tuple[str, ...] | None = None
    authorities: tuple[str, ...] | None = None


@dataclass(frozen=True)
class HostKeyRules:
    """How the host must prove its identity.

    A new key goes to the first of `user_files`. `revoked` is a file with a list of public keys.
    With `trusts_loopback` (NoHostAuthenticationForLocalhost) no other check is made at a loopback
    address.
    """

    user_files: tuple[Path, ...] = ()
    global_files: tuple[Path, ...] = ()
    alias: str | None = None
    strict: StrictHostKeyChecking = "ask"
    hash_names: bool = False
    revoked: Path | None = None
    trusts_loopback: bool = False


@dataclass(frozen=True)
class LoginRules:
    """The credentials that may be offered, and their order."""

    identity_files: tuple[Path, ...] = ()  # IdentityFile, in order; a missing file is no error
    certificate_files: tuple[Path, ...] = ()
    identities_only: bool = False  # whether agent keys that no IdentityFile names are left out
    identity_agent: str | None = None  # IdentityAgent; `None` for the agent of the calling shell
    # in the order of PreferredAuthentications, without those switched off
    methods: tuple[str, ...] = tuple(_SWITCHES)
    prompts: int = 3  # how many times a password is asked for; never with `batch`
    batch: bool = False


@dataclass(frozen=True)
class SentVariables:
    """The variables of a command's environment that are set for its shell on the host."""

    patterns: tuple[str, ...] = ()  # SendEnv
    fixed: tuple[str, ...] = ()  # SetEnv, `NAME=VALUE`

    def of(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables to send, with their values."""
        sent = {
            name: value
            for name, value in environment.items()
            if any(fnmatchcase(name, pattern) for pattern in self.patterns)
        }
        return sent | {name: value for name, _, value in (one.partition("=") for one in self.fixed)}


def host_key_rules(settings: SshSettings, names: TokenValues) -> HostKeyRules:
    """Return how the host must prove its identity."""
    revoked = settings.first("revokedhostkeys")
    return HostKeyRules(
        user_files=_paths(settings.first("userknownhostsfile"), names),
        global_files=_paths(settings.first("globalknownhostsfile"), names),
        alias=names.host_key_alias,
        strict=_STRICT.get(settings.first("stricthostkeychecking"), "ask"),
        hash_names=settings.on("hashknownhosts"),
        revoked=expand_path(revoked, names) if is_set(revoked) else None,
        trusts_loopback=settings.on("nohostauthenticationforlocalhost"),
    )


def login_rules(settings: SshSettings, names: TokenValues) -> LoginRules:
    """Return the credentials that may be offered, and their order."""
    return LoginRules(
        identity_files=_each_path(settings, "identityfile", names),
        certificate_files=_each_path(settings, "certificatefile", names),
        identities_only=settings.on("identitiesonly"),
        identity_agent=_agent(settings.first("identityagent"), names),
        methods=_methods(settings),
        prompts=number(settings.first("numberofpasswordprompts", "3"), "NumberOfPasswordPrompts"),
        batch=settings.on("batchmode"),
    )


def _methods(settings: SshSettings) -> tuple[str, ...]:
    preferred = settings.first("preferredauthentications") or ",".join(_SWITCHES)
    return tuple(
        method
        for method in preferred.split(",")
        if method in _SWITCHES and settings.first(_SWITCHES[method], "yes") not in {"no", "false"}
    )


def algorithms(settings: SshSettings) -> Algorithms:
    """Return the algorithms that the settings allow."""
    names = ("ciphers", "macs", "kexalgorithms", "hostkeyalgorithms")
    lists = map(settings.first, (*names, "pubkeyacceptedalgorithms", "casignaturealgorithms"))
    return Algorithms(*(tuple(named.split(",")) if named else None for named in lists))


def _paths(text: str, names: TokenValues) -> tuple[Path, ...]:
    """Split a list of files; `ssh -G` prints it without the quotes around blanks."""
    if not is_set(text):
        return ()
    return tuple(expand_path(part, names) for part in re.split(r"\s+(?=[/~%$]|[A-Za-z]:)", text))


def _each_path(settings: SshSettings, name: str, names: TokenValues) -> tuple[Path, ...]:
    return tuple(expand_path(text, names) for text in settings.every(name) if is_set(text))


def _agent(named: str, names: TokenValues) -> str | None:
    if named == "SSH_AUTH_SOCK" or named.startswith("$") or not is_set(named):
        return named or None
    # `ssh -G` has replaced its tokens already, since OpenSSH 8.3.
    try:
        return str(expand_path(named, names))
    except Usage:
        return str(names.folder / named)


def is_set(value: str) -> bool:
    """Return whether a setting has a value; in ssh_config(5) `none` removes it."""
    return value.lower() not in {"", "none"}


def number(value: str, name: str) -> int:
    """Return the number in a setting; `Usage` if it is none."""
    parsed = count(value)
    if parsed is None:
        raise Usage(f"`{name} {value}` in your ssh config is not a number", hint=f"set `{name} N`")
    return parsed
