"""The demo's keys and ssh configuration: new for each demo, in a folder of the user alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from jlremote.storage import paths

_CONFIG = """\
Host {host}
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile "{folder}/id"
    IdentitiesOnly yes
    IdentityAgent none
    PreferredAuthentications publickey
    UserKnownHostsFile "{folder}/known_hosts"
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""


def _new_key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519")


@dataclass(frozen=True)
class DemoKeys:
    """The host's key, and the only user key that it accepts."""

    host: asyncssh.SSHKey = field(default_factory=_new_key)
    user: asyncssh.SSHKey = field(default_factory=_new_key)


def write_configuration(config: Path, keys: DemoKeys, host: str, user: str, port: int) -> None:
    """Write what a client needs for `ssh -F CONFIG HOST`; the keys go beside `config`.

    Raises:
        JlrError: a file cannot be written.
    """
    folder = config.parent
    known = f"[127.0.0.1]:{port} ".encode() + keys.host.export_public_key()
    paths.write_whole(folder / "known_hosts", known)
    paths.write_whole(folder / "id", keys.user.export_private_key())
    paths.write_whole(config, _CONFIG.format(host=host, port=port, user=user, folder=folder))
