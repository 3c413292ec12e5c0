"""The `%` tokens, `~` and `${VARIABLE}` of ssh_config(5), for what `ssh -G` leaves unexpanded."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import Usage

_TOKEN = re.compile(r"%(.?)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
PROXY_TOKENS = "%hnpr"


@dataclass(frozen=True)
class TokenValues:
    """What the tokens of one destination stand for (section TOKENS of ssh_config(5))."""

    host: str
    hostname: str
    port: int
    user: str
    host_key_alias: str | None = None
    jump: str = ""

    def table(self) -> dict[str, str]:
        """Return each token's letter with its text."""
        here = socket.gethostname()
        text = f"{here}{self.hostname}{self.port}{self.user}{self.jump}"
        return {
            "%": "%",
            "C": hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
            "d": str(Path.home()),
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
    """Return the name of whoever runs this.

    Raises:
        Usage: the user has no name, as in a container that was given only a number.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError) as nameless:
        raise Usage(
            "this user has no name here", hint="set `LOGNAME`, and `User` in your ssh config"
        ) from nameless


def expand(text: str, names: TokenValues, allowed: str | None = None) -> str:
    """Return `text` with its tokens replaced; `allowed` limits which there may be.

    Raises:
        Usage: a token that ssh_config(5) does not know here; `ssh` stops at it too.
    """
    table = names.table()

    def replace(match: re.Match[str]) -> str:
        letter = match[1]
        if letter not in table or (allowed is not None and letter not in allowed):
            raise Usage(
                f"`%{letter}` in `{text}` is not a token of ssh_config",
                hint="write `%%` for a percent sign",
            )
        return table[letter]

    return _TOKEN.sub(replace, text)


def expand_path(text: str, names: TokenValues) -> Path:
    """Return a path with its tokens, `${VARIABLE}` and `~` replaced.

    Raises:
        Usage: an unknown token, or a variable that is not set.
    """
    return Path(expand(expand_variables(text), names)).expanduser()


def expand_variables(text: str) -> str:
    """Return `text` with each `${VARIABLE}` replaced.

    Raises:
        Usage: the variable is not set; `ssh` stops at it too.
    """

    def replace(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if value is None:
            raise Usage(
                f"`{text}` of your ssh config names the variable `{match[1]}`, which is not set",
                hint=f"set `{match[1]}`, or change the setting",
            )
        return value

    return _VARIABLE.sub(replace, text)
