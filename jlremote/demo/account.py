"""The account of the demo's host: the current user, shell, folder and environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import JlrError

SHELL = "/bin/sh"

# Variables of the laptop's side, or of a Jupyter terminal in which the demo was started.
_NOT_OF_THE_HOST = ("JLR_", "SSH_", "JUPYTER_", "JPY_")


@dataclass(frozen=True)
class Account:
    """What a login to the demo's host gets: user, login shell, current folder and environment."""

    user: str
    shell: str
    folder: Path
    environment: Mapping[str, str]


def current_account() -> Account:
    """Return the account of the user who runs this process.

    Raises:
        JlrError: the current folder is gone.
    """
    user, shell = _user_and_shell()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_NOT_OF_THE_HOST)
    }
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        raise JlrError("the current folder was deleted", hint="go to another one: `cd`") from None
    return Account(user, shell, folder, environment)


def _user_and_shell() -> tuple[str, str]:
    """Return the user's name and shell; a container's user may have neither."""
    if sys.platform == "win32":
        raise NotImplementedError
    import pwd

    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError:
        return f"user{os.getuid()}", SHELL
    shell = account.pw_shell
    usable = os.access(shell, os.X_OK) and Path(shell).name not in ("nologin", "false")
    return account.pw_name, shell if usable else SHELL
