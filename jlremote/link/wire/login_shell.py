"""What a login shell of the host finds, and a command by ssh does not: programs, and an engine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jlremote.text import listed

_SHOWN = 8  # folders of a PATH


@dataclass(frozen=True)
class LoginShell:
    """The answer of a login shell: what it finds, or why that is not known."""

    shell: str  # its path
    path: tuple[str, ...] = ()  # the folders of its PATH that a command by ssh lacks
    docker_host: str = ""  # the engine that it names, empty for none or the same
    finds: tuple[str, ...] = ()  # the paths of engines and the like that a command by ssh lacks
    trouble: str = ""  # why it is not known what it finds, empty if it is

    @property
    def helps(self) -> bool:
        """Whether it has what a command by ssh lacks."""
        return bool(self.finds or self.docker_host)

    def head(self) -> str:
        """Return shell text that gives a script what it lacks, after what it has."""
        lines = ""
        if self.helps and self.path:
            lines = f"PATH=${{PATH:+$PATH:}}{shlex.quote(':'.join(self.path))}; export PATH\n"
        if self.docker_host:
            lines += f"DOCKER_HOST={shlex.quote(self.docker_host)}; export DOCKER_HOST\n"
        return lines

    def looked(self) -> str:
        """Return where programs were looked for, in words."""
        if self.trouble:
            return f"a command by ssh finds none, and {self.trouble}"
        more = f", which adds {listed(self.path, _SHOWN)}" if self.path else ""
        return f"looked for on the PATH of ssh and of the login shell `{self.shell}`{more}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def login_shell(told: Mapping[str, Any]) -> LoginShell:
    """Return what `to_json` made."""
    return LoginShell(
        told["shell"],
        tuple(told["path"]),
        told["docker_host"],
        tuple(told["finds"]),
        told["trouble"],
    )
