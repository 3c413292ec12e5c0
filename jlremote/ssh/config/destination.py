"""The destination of a connection: a host's ssh settings, jump hosts included."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jlremote.errors import Usage
from jlremote.ssh.config import rules
from jlremote.ssh.config.rules import is_set, number
from jlremote.ssh.config.ssh_settings import RequestedHost, SshSettings, read_settings, remarks
from jlremote.ssh.config.tokens import PROXY_TOKENS, TokenValues, expand
from jlremote.untrusted import count

AddressFamily = Literal["any", "inet", "inet6"]

_FAMILIES: dict[str, AddressFamily] = {"inet": "inet", "inet6": "inet6"}
_MOST_HOPS = 16
# ssh waits as long as the system does, two minutes; too long for a command.
_STEP_SECONDS = 30.0
_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?P<host>\[[^\]]+\]|[^:@/]+)(?::(?P<port>\d+))?/?"
)
# A program such as `./proxy`. Others run elsewhere: the folder may be on a mount, and one of this
# host's hangs until the connection is there.
_RELATIVE = re.compile(r"\s*(?:exec\s+)?[\w.][^\s/]*/")


@dataclass(frozen=True)
class Destination:
    """One host as the user's ssh settings describe it."""

    host: str  # the typed name, without user and port
    hostname: str  # the name or address to connect to
    port: int
    user: str
    host_key: rules.HostKeyRules = field(default_factory=rules.HostKeyRules)
    login: rules.LoginRules = field(default_factory=rules.LoginRules)
    algorithms: rules.Algorithms = field(default_factory=rules.Algorithms)
    variables: rules.SentVariables = field(default_factory=rules.SentVariables)
    connect_timeout: float | None = None  # seconds, `None` for our default
    address_family: AddressFamily = "any"
    bind_address: str | None = None
    compression: bool = False
    alive_interval: float = 0  # seconds between probes, 0 for the caller's default
    alive_count: int = 3  # unanswered probes after which the connection counts as lost
    # the shell command whose stdin and stdout reach the server, tokens expanded
    proxy_command: str | None = None
    proxy_folder: Path | None = None  # where it runs, if its program has a relative path
    # ProxyUseFdpass, the command hands over a connected socket
    proxy_passes_descriptor: bool = False
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
    """Return the destination of `ssh HOST`, called in `folder`.

    Raises:
        Usage: the host, or a setting for it, is wrong; `ssh` refuses it too.
    """
    return _resolve(RequestedHost(host, folder=folder), ssh_config, hops=0)


def _resolve(asked: RequestedHost, ssh_config: Path | None, hops: int) -> Destination:
    if hops > _MOST_HOPS:
        raise Usage(
            f"the jump hosts of `{asked.host}` form a loop",
            hint="check `ProxyJump` in your ssh config: `ProxyJump none` ends a chain",
        )
    settings = read_settings(asked, ssh_config)
    names = _names(asked, settings)
    jump = _jump(settings, names, ssh_config, hops)
    command = settings.first("proxycommand")
    return Destination(
        host=names.host,
        hostname=names.hostname,
        port=names.port,
        user=names.user,
        host_key=rules.host_key_rules(settings, names),
        login=rules.login_rules(settings, names),
        algorithms=rules.algorithms(settings),
        variables=rules.SentVariables(settings.every("sendenv"), settings.every("setenv")),
        connect_timeout=_seconds(settings.first("connecttimeout")) or None,
        address_family=_FAMILIES.get(settings.first("addressfamily"), "any"),
        bind_address=settings.first("bindaddress") or None,
        compression=settings.on("compression"),
        alive_interval=_seconds(settings.first("serveraliveinterval")),
        alive_count=number(settings.first("serveralivecountmax", "3"), "ServerAliveCountMax"),
        proxy_command=expand(command, names, PROXY_TOKENS) if is_set(command) else None,
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
        port=number(settings.first("port", "22"), "Port"),
        user=settings.first("user"),
        host_key_alias=alias.lower() if is_set(alias) else None,
        jump=settings.first("proxyjump"),
        folder=asked.folder,
    )


def _jump(
    settings: SshSettings, names: TokenValues, ssh_config: Path | None, hops: int
) -> Destination | None:
    chain = settings.first("proxyjump")
    if not is_set(chain):
        return None
    chain = expand(chain, names, PROXY_TOKENS)  # ssh makes a ProxyCommand of it
    before, _, last = chain.rpartition(",")
    parts = _JUMP.fullmatch(last.strip())
    if parts is None:
        raise Usage(
            f"`{last}` in the `ProxyJump` of `{names.host}` is not a host",
            hint="write a jump host as `[user@]host[:port]`",
        )
    host = parts["host"].strip("[]")
    asked = RequestedHost(host, parts["user"], parts["port"], before or None, names.folder)
    return _resolve(asked, ssh_config, hops + 1)


def _seconds(value: str) -> float:
    return float(count(value) or 0)
