"""The ssh config where `ssh` is missing: paramiko's parser, with a note about its gaps."""

from __future__ import annotations

import re
from pathlib import Path

import paramiko

from jlremote.errors import Usage
from jlremote.ssh.config.tokens import expand_home, local_user

GAPS = (
    "no `ssh` program was found, so your ssh config was read by a simpler parser: `Include` is not "
    "followed, `Match exec` is refused, and a `Match` with a criterion that the parser does not "
    "know counts as matched"
)
_DEFAULT_IDENTITIES = ("id_rsa", "id_ecdsa", "id_ed25519")
# paramiko would run its command with our stdin, in threads whose errors are lost.
_MATCH_EXEC = re.compile(r"^\s*Match\b.*\bexec\b", re.IGNORECASE | re.MULTILINE)
_UNREADABLE = (paramiko.ConfigParseError, paramiko.CouldNotCanonicalize, OSError, ValueError)
_DEFAULTS = {
    "userknownhostsfile": ("~/.ssh/known_hosts ~/.ssh/known_hosts2",),
    "globalknownhostsfile": ("/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2",),
    "identityfile": tuple(f"~/.ssh/{name}" for name in _DEFAULT_IDENTITIES),
}


def read_without_ssh(
    host: str, user: str | None, port: str | None, jump: str | None, ssh_config: Path | None
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the settings of a host in the form of `ssh -G`, and notes for the person.

    Raises:
        Usage: the file cannot be read.
    """
    named_user, _, rest = host.removeprefix("ssh://").rstrip("/").rpartition("@")
    name, _, named_port = rest.partition(":") if rest.count(":") == 1 else (rest, "", "")
    name = name.strip("[]")
    found = _lookup(ssh_config or expand_home("~/.ssh/config"), name)
    values = {**_DEFAULTS, "hostname": (name,), "user": (local_user(),), **found}
    asked = {"user": user or named_user, "port": port or named_port, "proxyjump": jump}
    values |= {setting: (value,) for setting, value in asked.items() if value}
    return values, (GAPS,)


def _lookup(path: Path, name: str) -> dict[str, tuple[str, ...]]:
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        if _MATCH_EXEC.search(text):
            raise paramiko.ConfigParseError("`Match exec` needs OpenSSH")
        found = paramiko.SSHConfig.from_text(text).lookup(name)
    except _UNREADABLE as error:
        raise Usage(
            f"cannot read the ssh config `{path}`: {error}",
            hint="install OpenSSH's `ssh`, which reads every config",
        ) from error
    return {
        setting: tuple(value) if isinstance(value, list) else (str(value),)
        for setting, value in found.items()
    }
