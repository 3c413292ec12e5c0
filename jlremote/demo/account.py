"""The account of the demo's host, its keys, and the ssh configuration that leads to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

if sys.platform == "win32":
    raise ImportError("the demo does not run on Windows")

import pwd

import asyncssh

from jlremote.laptop import paths

SHELL = "/bin/sh"

# Variables of the laptop's side, or of a Jupyter terminal in which the demo was started.
_NOT_OF_THE_HOST = ("JLR_", "SSH_", "JUPYTER_", "JPY_")
# Where Jupyter, its kernels and the npm that it asks keep their files, else in the home folder.
_KEPT = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "npm_config_cache")
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


@dataclass(frozen=True)
class Account:
    """What a login to the demo's host gets: user, login shell, current folder and environment."""

    user: str
    shell: str
    folder: Path
    environment: Mapping[str, str]


def current_account(folder: Path) -> Account:
    """Return the account of the user who runs this process, with what Jupyter keeps in `folder`."""
    user, shell = _user_and_shell()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_NOT_OF_THE_HOST)
    }
    kept = {name: str(folder / ".jupyter" / name.lower()) for name in _KEPT}
    # A host has a Python, which jobs need; this machine may have only the one that runs jlr.
    programs = (environment.get("PATH"), str(Path(sys.executable).parent))
    kept["PATH"] = os.pathsep.join(filter(None, programs))
    return Account(user, shell, folder, environment | kept)


def _user_and_shell() -> tuple[str, str]:
    """Return the user's name and shell; a container's user may have neither."""
    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError:
        return f"user{os.getuid()}", SHELL
    shell = account.pw_shell
    usable = os.access(shell, os.X_OK) and Path(shell).name not in ("nologin", "false")
    return account.pw_name, shell if usable else SHELL


def _new_key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519")


@dataclass(frozen=True)
class DemoKeys:
    """The host's key and the only user key that it accepts, new for each demo."""

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
