"""The destination of a connection: a host's ssh settings as rules, jump hosts included."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from jlremote.errors import Usage
from jlremote.ssh.config.ssh_settings import RequestedHost, SshSettings, read_settings, remarks
from jlremote.ssh.config.tokens import PROXY_TOKENS, TokenValues, expand, expand_path
from jlremote.untrusted import count

_MOST_HOPS = 16
# ssh waits as long as the system does, two minutes; too long for a command.
_STEP_SECONDS = 30.0
_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?P<host>\[[^\]]+\]|[^:@/]+)(?::(?P<port>\d+))?/?"
)
# A program such as `./proxy`. Others run elsewhere: the folder may be on a mount, and one of this
# host's hangs until the connection is there.
_RELATIVE = re.compile(r"\s*(?:exec\s+)?[\w.][^\s/]*/")
# Values of StrictHostKeyChecking; all others ask. A changed key is refused with each.
_STRICT = dict.fromkeys(("yes", "true"), "yes")
_STRICT |= dict.fromkeys(("no", "off", "false", "accept-new"), "accept-new")
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
    strict: str = "ask"  # or `yes`, `accept-new`
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
    methods: tuple[str, ...] = tuple(_SWITCHES)  # in PreferredAuthentications' order
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


@dataclass(frozen=True)
class Destination:
    """One host as the user's ssh settings describe it."""

    host: str  # the typed name, without user and port
    hostname: str  # the name or address to connect to
    port: int
    user: str
    host_key: HostKeyRules = field(default_factory=HostKeyRules)
    login: LoginRules = field(default_factory=LoginRules)
    algorithms: Algorithms = field(default_factory=Algorithms)
    variables: SentVariables = field(default_factory=SentVariables)
    connect_timeout: float | None = None  # seconds, `None` for our default
    address_family: str = "any"  # or `inet`, `inet6`
    bind_address: str | None = None
    compression: bool = False
    alive_interval: float = 0  # seconds between probes, 0 for the caller's default
    alive_count: int = 3  # unanswered probes after which the connection counts as lost
    proxy_command: str | None = None  # its stdin and stdout reach the server; tokens expanded
    proxy_folder: Path | None = None  # where it runs, if its program has a relative path
    proxy_passes_descriptor: bool = False  # ProxyUseFdpass: it hands over a connected socket
    jump: Destination | None = None
    notes: tuple[str, ...] = ()  # the settings that jlr does not honour, a sentence each

    @property
    def step_seconds(self) -> float:
        """The time limit in seconds for each step until the server shows its key."""
        return self.connect_timeout or _STEP_SECONDS

    @property
    def account(self) -> str:
        """The login as people write it: `user@host`, with the port where it is not 22."""
        return f"{self.user}@{self.place}"

    @property
    def place(self) -> str:
        """The server as people and known_hosts files write it: `host` or `[host]:port`."""
        name = self.hostname.lower()
        return name if self.port == 22 else f"[{name}]:{self.port}"


def resolve(host: str, ssh_config: Path | None, folder: Path = Path()) -> Destination:
    """Return the destination of `ssh HOST`, called in `folder`; `Usage` if `ssh` refuses it."""
    return _resolve(RequestedHost(host, folder=folder), ssh_config, hops=0)


def _resolve(asked: RequestedHost, ssh_config: Path | None, hops: int) -> Destination:
    if hops > _MOST_HOPS:
        hint = "check `ProxyJump` in your ssh config: `ProxyJump none` ends a chain"
        raise Usage(f"the jump hosts of `{asked.host}` form a loop", hint=hint)
    settings = read_settings(asked, ssh_config)
    names = _names(asked, settings)
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
        variables=SentVariables(settings.every("sendenv"), settings.every("setenv")),
        connect_timeout=count(settings.first("connecttimeout")) or None,
        address_family=settings.first("addressfamily", "any"),
        bind_address=settings.first("bindaddress") or None,
        compression=settings.on("compression"),
        alive_interval=count(settings.first("serveraliveinterval")) or 0,
        alive_count=_number(settings.first("serveralivecountmax", "3"), "ServerAliveCountMax"),
        proxy_command=expand(command, names, PROXY_TOKENS) if _is_set(command) else None,
        proxy_folder=asked.folder if _RELATIVE.match(command) else None,
        proxy_passes_descriptor=settings.on("proxyusefdpass"),
        jump=jump,
        notes=(*(jump.notes if jump else ()), *settings.notes, *remarks(names.host, settings)),
    )


def _names(asked: RequestedHost, settings: SshSettings) -> TokenValues:
    typed = _JUMP.fullmatch(asked.host)
    alias = settings.first("hostkeyalias")
    name = typed["host"].strip("[]") if typed else asked.host.rpartition("@")[2]
    return TokenValues(
        host=name,
        hostname=settings.first("hostname", name),
        port=_number(settings.first("port", "22"), "Port"),
        user=settings.first("user"),
        host_key_alias=alias.lower() if _is_set(alias) else None,
        jump=settings.first("proxyjump"),
        folder=asked.folder,
    )


def _jump(
    settings: SshSettings, names: TokenValues, ssh_config: Path | None, hops: int
) -> Destination | None:
    chain = settings.first("proxyjump")
    if not _is_set(chain):
        return None
    chain = expand(chain, names, PROXY_TOKENS)  # ssh makes a ProxyCommand of it
    before, _, last = chain.rpartition(",")
    parts = _JUMP.fullmatch(last.strip())
    if parts is None:
        hint = "write a jump host as `[user@]host[:port]`"
        raise Usage(f"`{last}` in the `ProxyJump` of `{names.host}` is not a host", hint=hint)
    host = parts["host"].strip("[]")
    asked = RequestedHost(host, parts["user"], parts["port"], before or None, names.folder)
    return _resolve(asked, ssh_config, hops + 1)


def _host_key_rules(settings: SshSettings, names: TokenValues) -> HostKeyRules:
    revoked = settings.first("revokedhostkeys")
    return HostKeyRules(
        user_files=_paths(settings.first("userknownhostsfile"), names),
        global_files=_paths(settings.first("globalknownhostsfile"), names),
        alias=names.host_key_alias,
        strict=_STRICT.get(settings.first("stricthostkeychecking"), "ask"),
        hash_names=settings.on("hashknownhosts"),
        revoked=expand_path(revoked, names) if _is_set(revoked) else None,
        trusts_loopback=settings.on("nohostauthenticationforlocalhost"),
    )


def _login_rules(settings: SshSettings, names: TokenValues) -> LoginRules:
    return LoginRules(
        identity_files=_each_path(settings, "identityfile", names),
        certificate_files=_each_path(settings, "certificatefile", names),
        identities_only=settings.on("identitiesonly"),
        identity_agent=_agent(settings.first("identityagent"), names),
        methods=_methods(settings),
        prompts=_number(settings.first("numberofpasswordprompts", "3"), "NumberOfPasswordPrompts"),
        batch=settings.on("batchmode"),
    )


def _methods(settings: SshSettings) -> tuple[str, ...]:
    preferred = settings.first("preferredauthentications") or ",".join(_SWITCHES)
    return tuple(
        method
        for method in preferred.split(",")
        if method in _SWITCHES and settings.first(_SWITCHES[method], "yes") not in {"no", "false"}
    )


def _algorithms(settings: SshSettings) -> Algorithms:
    names = ("ciphers", "macs", "kexalgorithms", "hostkeyalgorithms")
    lists = map(settings.first, (*names, "pubkeyacceptedalgorithms", "casignaturealgorithms"))
    return Algorithms(*(tuple(named.split(",")) if named else None for named in lists))


def _paths(text: str, names: TokenValues) -> tuple[Path, ...]:
    """Split a list of files; `ssh -G` prints it without the quotes around blanks."""
    if not _is_set(text):
        return ()
    return tuple(expand_path(part, names) for part in re.split(r"\s+(?=[/~%$]|[A-Za-z]:)", text))


def _each_path(settings: SshSettings, name: str, names: TokenValues) -> tuple[Path, ...]:
    return tuple(expand_path(text, names) for text in settings.every(name) if _is_set(text))


def _agent(named: str, names: TokenValues) -> str | None:
    if named == "SSH_AUTH_SOCK" or named.startswith("$") or not _is_set(named):
        return named or None
    # `ssh -G` has replaced its tokens already, since OpenSSH 8.3.
    try:
        return str(expand_path(named, names))
    except Usage:
        return str(names.folder / named)


def _is_set(value: str) -> bool:
    """Return whether a setting has a value; in ssh_config(5) `none` removes it."""
    return value.lower() not in {"", "none"}


def _number(value: str, name: str) -> int:
    """Return the number in a setting; `Usage` if it is none."""
    parsed = count(value)
    if parsed is None:
        raise Usage(f"`{name} {value}` in your ssh config is not a number", hint=f"set `{name} N`")
    return parsed
