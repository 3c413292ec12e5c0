"""The settings of a host, as the user's own `ssh -G` resolves them.

Only `ssh -G` knows Include, Match, canonical names and the order of the files, so nothing here
re-implements them. Where `ssh` is not installed, paramiko's parser reads the file instead.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import paramiko

from jlremote.errors import Usage
from jlremote.laptop.typed_place import check_host
from jlremote.ssh.config.tokens import expand_home, local_user
from jlremote.text import one_line

_SECONDS = 30  # `Match exec` and canonical names may ask a slow name server
# The settings that jlr does not honour, shown with `--verbose`, and the values that switch one off.
_OFF = frozenset({"", "no", "none", "false", "0 0"})
_RSA_SIZE = "1024"  # OpenSSH's default
_REMARKS = {
    "hostbasedauthentication": "host-based authentication is not offered",
    "pkcs11provider": "keys of a PKCS#11 token are used only through an agent",
    "verifyhostkeydns": "SSHFP records are not looked up; the known_hosts files decide",
    "knownhostscommand": "the command is not run; the known_hosts files decide",
    "checkhostip": "only the name is checked, not the address",
    "bindinterface": "connections are bound by BindAddress only",
    "localcommand": "the command is not run",
    "forwardagent": "the agent is never forwarded",
    "forwardx11": "X11 is not forwarded",
    "controlpath": "jlr keeps a connection of its own instead of sharing ssh's",
    "addkeystoagent": "keys are not added to the agent",
    "localforward": "jlr opens only its own forwards",
    "remoteforward": "jlr opens only its own forwards",
    "dynamicforward": "jlr opens only its own forwards",
    "rekeylimit": "keys are renewed after jlr's own limit of bytes",
    "remotecommand": "jlr runs only its own commands",
    "tunnel": "no tunnel device is opened",
}

_GAPS = (
    "no `ssh` program was found, so your ssh config was read by a simpler parser: `Include` is not "
    "followed, `Match exec` is refused, and a `Match` with a criterion that the parser does not "
    "know counts as matched"
)
# paramiko would run its command with our stdin, in threads whose errors are lost.
_MATCH_EXEC = re.compile(r"^\s*Match\b.*\bexec\b", re.IGNORECASE | re.MULTILINE)
_UNREADABLE = (paramiko.ConfigParseError, paramiko.CouldNotCanonicalize, OSError, ValueError)
_DEFAULTS = {
    "userknownhostsfile": ("~/.ssh/known_hosts ~/.ssh/known_hosts2",),
    "globalknownhostsfile": ("/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2",),
    "identityfile": ("~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519"),
}


@dataclass(frozen=True)
class RequestedHost:
    """A host that a person or a ProxyJump names, before any config is read.

    `host` is an alias or a name, also as `user@host` or `ssh://…`; the next three are the values
    of `-l`, `-p` and `-J`. Relative paths in the settings begin in `folder`.
    """

    host: str
    user: str | None = None
    port: str | None = None
    jump: str | None = None
    folder: Path = Path()


@dataclass(frozen=True)
class SshSettings:
    """Resolved settings: lower-case names, each with its values in order."""

    values: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def first(self, name: str, default: str = "") -> str:
        return next(iter(self.values.get(name, ())), default)

    def every(self, name: str) -> tuple[str, ...]:
        return self.values.get(name, ())

    def on(self, name: str) -> bool:
        return self.first(name).lower() in {"yes", "true"}


def read_settings(asked: RequestedHost, ssh_config: Path | None) -> SshSettings:
    """Return the settings of a host from `ssh -G`; `Usage` if that refuses it or the config."""
    check_host(asked.host)
    if ssh_config is not None and not ssh_config.is_file():
        raise Usage(f"no ssh config at `{ssh_config}`", hint="check `--ssh-config`")
    program = shutil.which("ssh")
    if program is None:
        return _read_without_ssh(asked, ssh_config)
    values: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    options = {"-F": ssh_config, "-l": asked.user, "-p": asked.port, "-J": asked.jump}
    given = [(option, str(value)) for option, value in options.items() if value is not None]
    argv = (program, "-G", *itertools.chain(*given), "--", asked.host)
    for line in _run(argv, asked.host).splitlines():
        name, _, value = line.partition(" ")
        values[name.lower()] += (value,)
    return SshSettings(values)


def _read_without_ssh(asked: RequestedHost, ssh_config: Path | None) -> SshSettings:
    user, _, rest = asked.host.removeprefix("ssh://").rstrip("/").rpartition("@")
    name, _, port = rest.partition(":") if rest.count(":") == 1 else (rest, "", "")
    name = name.strip("[]")
    values = {**_DEFAULTS, "hostname": (name,), "user": (local_user(),)}
    values |= _lookup(ssh_config or expand_home("~/.ssh/config"), name)
    typed = {"user": asked.user or user, "port": asked.port or port, "proxyjump": asked.jump}
    values |= {setting: (value,) for setting, value in typed.items() if value}
    return SshSettings(values, (_GAPS,))


def _lookup(path: Path, name: str) -> dict[str, tuple[str, ...]]:
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        if _MATCH_EXEC.search(text):
            raise paramiko.ConfigParseError("`Match exec` needs OpenSSH")
        values = paramiko.SSHConfig.from_text(text).lookup(name)
    except _UNREADABLE as error:
        hint = "install OpenSSH's `ssh`, which reads every config"
        raise Usage(f"cannot read the ssh config `{path}`: {error}", hint=hint) from error
    return {
        setting: tuple(value) if isinstance(value, list) else (str(value),)
        for setting, value in values.items()
    }


def _run(argv: tuple[str, ...], host: str) -> str:
    try:
        answer = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        hint = "check the `Match exec` commands of your ssh config: one may hang"
        raise Usage(f"`ssh -G {host}` gave no answer within {_SECONDS} s", hint=hint) from None
    if answer.returncode == 0:
        return answer.stdout.decode("utf-8", "surrogateescape")
    every = answer.stderr.decode("utf-8", "replace").splitlines()
    lines = [line for line in every if line.strip() and not line.startswith("Pseudo-terminal")]
    said = one_line(" / ".join(lines[-3:])) or "no reason given"
    if any(line.startswith("usage:") for line in lines):
        said = "it is not a destination"
    hint = f"`ssh -G {shlex.quote(host)}` shows the same error; check your ssh config"
    raise Usage(f"ssh refuses `{host}`: {said}", hint=hint)


def remarks(host: str, settings: SshSettings) -> tuple[str, ...]:
    """Return a sentence for each setting of a host that is set and not honoured."""
    sentences = [
        f"{host}: `{name} {settings.first(name)}` is not honoured: {remark}"
        for name, remark in _REMARKS.items()
        if settings.first(name).lower() not in _OFF
    ]
    if settings.first("stricthostkeychecking") in {"no", "off", "false"}:
        sentences.append(
            f"{host}: `StrictHostKeyChecking no` accepts new keys; a changed key is still refused"
        )
    if settings.first("requiredrsasize", _RSA_SIZE) != _RSA_SIZE:
        sentences.append(f"{host}: `RequiredRSASize` is not honoured: any RSA key is accepted")
    return tuple(sentences)
