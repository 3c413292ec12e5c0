"""The `%` tokens, `~` and `${VARIABLE}` of ssh_config(5) that `ssh -G` leaves unexpanded."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import Usage

_TOKEN = re.compile(r"%(.?)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
PROXY_TOKENS = "%hknpr"


@dataclass(frozen=True)
class TokenValues:
    """The values of a destination's tokens (section TOKENS of ssh_config(5))."""

    host: str
    hostname: str
    port: int
    user: str
    host_key_alias: str | None = None
    jump: str = ""
    folder: Path = Path()  # where relative paths begin

    def table(self) -> dict[str, str]:
        """Return each token's letter with its text."""
        here = socket.gethostname()
        text = f"{here}{self.hostname}{self.port}{self.user}{self.jump}"
        return {
            "%": "%",
            "C": hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
            "d": str(expand_home("~")),
            "h": self.hostname,
            "i": str(os.getuid()) if hasattr(os, "getuid") else "",
            "j": self.jump,
            "k": self.host_key_alias or self.host,
            "L": here.partition(".")[0],
            "l": here,
            "n": self.host,
            "p": str(self.port),
            "r": self.user,
            "u": local_user(),
        }


def local_user() -> str:
    """Return the name of the local user; `Usage` if there is only a number, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as nameless:
        hint = "set `LOGNAME`, and `User` in your ssh config"
        raise Usage("cannot find the name of the local user", hint=hint) from nameless


def expand(text: str, names: TokenValues, allowed: str | None = None) -> str:
    """Return `text` with its tokens replaced; `Usage` for one that is not among the `allowed`."""
    table = names.table()

    def replace(match: re.Match[str]) -> str:
        letter = match[1]
        if letter not in table or (allowed is not None and letter not in allowed):
            hint = "write `%%` for a percent sign"
            raise Usage(f"`%{letter}` in `{text}` is not a token of ssh_config", hint=hint)
        return table[letter]

    return _TOKEN.sub(replace, text)


def expand_path(text: str, names: TokenValues) -> Path:
    """Return a path with its tokens, `${VARIABLE}` and `~` replaced, below the names' folder.

    What is unknown there, or not set, is a `Usage` error, as to `ssh`.
    """
    return names.folder / expand_home(expand(_VARIABLE.sub(_variable, text), names))


def expand_home(text: str) -> Path:
    """Return a path with its `~` or `~user` replaced.

    As in ssh, one's own home folder is the one in the user database, whatever `HOME` says.
    """
    try:
        if sys.platform != "win32" and (text == "~" or text.startswith("~/")):
            import pwd

            with contextlib.suppress(KeyError):  # the user has only a number, and ssh would refuse
                return Path(pwd.getpwuid(os.getuid()).pw_dir + text[1:])
        return Path(text).expanduser()
    except RuntimeError as error:
        message = f"cannot find the home folder of `{text}` in your ssh config"
        raise Usage(message, hint="write the whole path there") from error


def _variable(match: re.Match[str]) -> str:
    value = os.environ.get(match[1])
    if value is None:
        hint = f"set `{match[1]}`, or change the setting"
        raise Usage(f"the variable `{match[1]}` of your ssh config is not set", hint=hint)
    return value
