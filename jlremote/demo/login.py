"""Who logs in to the demo's host: the person who runs it, in the folder where they are."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import JlrError

SHELL = "/bin/sh"

# What belongs to the laptop's side, or to the Jupyter in whose terminal the demo was started.
_NOT_OF_THE_HOST = ("JLR_", "SSH_", "JUPYTER_", "JPY_")


@dataclass(frozen=True)
class Login:
    """What a person who logs in finds.

    Attributes:
        user: who that is.
        shell: path of the login shell.
        folder: where commands start.
        environment: what they start with.
    """

    user: str
    shell: str
    folder: Path
    environment: Mapping[str, str]


def current_login() -> Login:
    """Return the login of the person who runs this process, as they are here and now.

    Raises:
        JlrError: the current folder is gone.
    """
    user, shell = _account()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_NOT_OF_THE_HOST)
    }
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        raise JlrError("the current folder was deleted", hint="go to another one: `cd`") from None
    return Login(user, shell, folder, environment)


def _account() -> tuple[str, str]:
    """Return the user's name and shell; a container's user may have neither."""
    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError:
        return f"user{os.getuid()}", SHELL
    shell = account.pw_shell
    usable = os.access(shell, os.X_OK) and Path(shell).name not in ("nologin", "false")
    return account.pw_name, shell if usable else SHELL
