"""Where a connection goes and by which rules: a host's ssh settings, jump hosts included."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jlremote.errors import Usage
from jlremote.ssh.ssh_settings import Asked, Settings, read_settings
from jlremote.ssh.tokens import PROXY_TOKENS, Names, expand, expand_path
from jlremote.ssh.unsupported import remarks

StrictHostKeyChecking = Literal["yes", "no", "ask", "accept-new"]
AddressFamily = Literal["any", "inet", "inet6"]

_MOST_HOPS = 16
_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?P<host>\[[^\]]+\]|[^:@/]+)(?::(?P<port>\d+))?/?"
)
_STRICT: dict[str, StrictHostKeyChecking] = {
    "yes": "yes",
    "true": "yes",
    "no": "no",
    "off": "no",
    "false": "no",
    "accept-new": "accept-new",
}
_PREFERRED = ("publickey", "keyboard-interactive", "password")


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
    """How the host has to prove who it is (ssh_config(5) names in the attributes' order).

    Attributes:
        user_files: UserKnownHostsFile; a new key goes to the first.
        global_files: GlobalKnownHostsFile.
        alias: HostKeyAlias.
        strict: StrictHostKeyChecking.
        hash_names: HashKnownHosts.
        revoked: RevokedHostKeys, a list of public keys.
    """

    user_files: tuple[Path, ...] = ()
    global_files: tuple[Path, ...] = ()
    alias: str | None = None
    strict: StrictHostKeyChecking = "ask"
    hash_names: bool = False
    revoked: Path | None = None


@dataclass(frozen=True)
class LoginRules:
    """Which credentials may be offered, and in which order.

    Attributes:
        identity_files: IdentityFile, in order; a missing file is no error.
        certificate_files: CertificateFile.
        identities_only: whether agent keys that no IdentityFile names stay out.
        identity_agent: IdentityAgent; `None` for the agent of the calling shell.
        methods: the methods in the order of PreferredAuthentications, those switched off left out.
        prompts: how often a password is asked for.
        batch: BatchMode, nothing is asked.
    """

    identity_files: tuple[Path, ...] = ()
    certificate_files: tuple[Path, ...] = ()
    identities_only: bool = False
    identity_agent: str | None = None
    methods: tuple[str, ...] = _PREFERRED
    prompts: int = 3
    batch: bool = False


@dataclass(frozen=True)
class Destination:
    """One host as the user's ssh settings describe it.

    Attributes:
        host: what the person typed, without user and port.
        hostname: name or address to connect to.
        connect_timeout: seconds, `None` for the system's own patience.
        alive_interval: seconds between probes, 0 for the caller's choice.
        alive_count: unanswered probes after which the connection counts as lost.
        proxy_command: shell command whose stdin and stdout reach the server, tokens expanded.
        proxy_passes_descriptor: ProxyUseFdpass, the command hands over a connected socket.
        jump: the host through which this one is reached.
        notes: what is set and not honoured, a sentence each.
    """

    host: str
    hostname: str
    port: int
    user: str
    host_key: HostKeyRules = HostKeyRules()
    login: LoginRules = LoginRules()
    algorithms: Algorithms = Algorithms()
    connect_timeout: float | None = None
    address_family: AddressFamily = "any"
    bind_address: str | None = None
    compression: bool = False
    alive_interval: float = 0
    alive_count: int = 3
    proxy_command: str | None = None
    proxy_passes_descriptor: bool = False
    jump: Destination | None = None
    notes: tuple[str, ...] = ()

    @property
    def account(self) -> str:
        """Name the login for people: `user@host`, with the port where it is not 22."""
        return f"{self.user}@{self.place}"

    @property
    def place(self) -> str:
        """Name the server for people and in known_hosts files: `host` or `[host]:port`."""
        name = self.hostname.lower()
        return name if self.port == 22 else f"[{name}]:{self.port}"


def resolve(host: str, ssh_config: Path | None) -> Destination:
    """Return where `ssh HOST` would go, and how.

    Raises:
        Usage: the host, or a setting for it, is one that `ssh` refuses too.
    """
    return _resolve(Asked(host), ssh_config, hops=0)


def _resolve(asked: Asked, ssh_config: Path | None, hops: int) -> Destination:
    if hops > _MOST_HOPS:
        raise Usage(
            f"the jump hosts of `{asked.host}` go in circles",
            hint="check `ProxyJump` in your ssh config: `ProxyJump none` ends a chain",
        )
    settings = read_settings(asked, ssh_config)
    names = _names(asked.host, settings)
    jump = _jump(settings, names, ssh_config, hops)
    command = settings.first("proxycommand")
    return Destination(
        host=names.host,
        hostname=names.hostname,
        port=names.port,
        user=names.user,
        host_key=_host_key_rules(settings, names),
        login=_login_rules(settings, names),
        algorithms=_algorithms(settings),
        connect_timeout=_seconds(settings.first("connecttimeout")) or None,
        address_family=_address_family(settings),
        bind_address=settings.first("bindaddress") or None,
        compression=settings.on("compression"),
        alive_interval=_seconds(settings.first("serveraliveinterval")),
        alive_count=_number(settings.first("serveralivecountmax", "3"), "ServerAliveCountMax"),
        proxy_command=expand(command, names, PROXY_TOKENS) if _is_set(command) else None,
        proxy_passes_descriptor=settings.on("proxyusefdpass"),
        jump=jump,
        notes=(*(jump.notes if jump else ()), *settings.notes, *remarks(names.host, settings)),
    )


def _names(host: str, settings: Settings) -> Names:
    typed = _JUMP.fullmatch(host)
    alias = settings.first("hostkeyalias")
    name = typed["host"].strip("[]") if typed else host.rpartition("@")[2]
    return Names(
        host=name,
        hostname=settings.first("hostname", name).strip("[]"),
        port=_number(settings.first("port", "22"), "Port"),
        user=settings.first("user"),
        host_key_alias=alias.lower() if _is_set(alias) else None,
        jump=settings.first("proxyjump"),
    )


def _jump(
    settings: Settings, names: Names, ssh_config: Path | None, hops: int
) -> Destination | None:
    """Resolve the last jump host; what stands before it is how that one is reached."""
    chain = settings.first("proxyjump")
    if not _is_set(chain):
        return None
    before, _, last = chain.rpartition(",")
    parts = _JUMP.fullmatch(last.strip())
    if parts is None:
        raise Usage(
            f"`{last}` in the `ProxyJump` of `{names.host}` is not a host",
            hint="a jump host is `[user@]host[:port]`",
        )
    asked = Asked(parts["host"].strip("[]"), parts["user"], parts["port"], before or None)
    return _resolve(asked, ssh_config, hops + 1)


def _host_key_rules(settings: Settings, names: Names) -> HostKeyRules:
    revoked = settings.first("revokedhostkeys")
    return HostKeyRules(
        user_files=_paths(settings.first("userknownhostsfile"), names),
        global_files=_paths(settings.first("globalknownhostsfile"), names),
        alias=names.host_key_alias,
        strict=_STRICT.get(settings.first("stricthostkeychecking"), "ask"),
        hash_names=settings.on("hashknownhosts"),
        revoked=expand_path(revoked, names) if _is_set(revoked) else None,
    )


def _login_rules(settings: Settings, names: Names) -> LoginRules:
    agent = settings.first("identityagent")
    return LoginRules(
        identity_files=_each_path(settings, "identityfile", names),
        certificate_files=_each_path(settings, "certificatefile", names),
        identities_only=settings.on("identitiesonly"),
        identity_agent=agent or None,
        methods=_methods(settings),
        prompts=_number(settings.first("numberofpasswordprompts", "3"), "NumberOfPasswordPrompts"),
        batch=settings.on("batchmode"),
    )


def _methods(settings: Settings) -> tuple[str, ...]:
    switches = {
        "publickey": "pubkeyauthentication",
        "keyboard-interactive": "kbdinteractiveauthentication",
        "password": "passwordauthentication",
    }
    wanted = settings.first("preferredauthentications") or ",".join(_PREFERRED)
    return tuple(
        method
        for method in wanted.split(",")
        if method in switches and settings.first(switches[method], "yes") not in {"no", "false"}
    )


def _algorithms(settings: Settings) -> Algorithms:
    def names(setting: str) -> tuple[str, ...] | None:
        value = settings.first(setting)
        return tuple(value.split(",")) if value else None

    return Algorithms(
        ciphers=names("ciphers"),
        macs=names("macs"),
        key_exchange=names("kexalgorithms"),
        host_keys=names("hostkeyalgorithms"),
        public_keys=names("pubkeyacceptedalgorithms"),
        authorities=names("casignaturealgorithms"),
    )


def _paths(text: str, names: Names) -> tuple[Path, ...]:
    """Split a list of files, which `ssh -G` prints without the quotes that kept blanks together."""
    if not _is_set(text):
        return ()
    return tuple(expand_path(part, names) for part in re.split(r"\s+(?=[/~%$]|[A-Za-z]:)", text))


def _each_path(settings: Settings, name: str, names: Names) -> tuple[Path, ...]:
    return tuple(expand_path(text, names) for text in settings.every(name) if _is_set(text))


def _address_family(settings: Settings) -> AddressFamily:
    families: dict[str, AddressFamily] = {"inet": "inet", "inet6": "inet6"}
    return families.get(settings.first("addressfamily"), "any")


def _is_set(value: str) -> bool:
    return value.lower() not in {"", "none"}


def _seconds(value: str) -> float:
    return float(value) if value.isdecimal() else 0.0


def _number(value: str, name: str) -> int:
    if not value.isdecimal():
        raise Usage(f"`{name}` is `{value}`, which is not a number", hint="check your ssh config")
    return int(value)
