"""The states of a link and its forwards in words, and what a login shell of its host finds."""

from __future__ import annotations

import copy
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jlremote.errors import JlrError
from jlremote.text import listed

_SHOWN = 8  # folders of a PATH


class State(StrEnum):
    """The state of a link, a forward or a session."""

    CONNECTING = "connecting"
    UP = "up"
    RECONNECTING = "reconnecting"
    NEEDS_AUTH = "needs-auth"
    DOWN = "down"
    JUPYTER_DEAD = "jupyter-dead"
    CONTAINER_GONE = "container-gone"
    CONTAINER_STOPPED = "container-stopped"
    PAUSED = "paused"
    RESTARTING = "restarting"
    RESTARTED = "restarted"
    STOPPED = "stopped"
    IDLE_STOPPED = "idle-stopped"
    # of a session that is a job of a scheduler
    QUEUED = "queued"
    STARTING = "starting"
    JOB_ENDED = "job-ended"
    # of a session that only its host knows
    RUNNING = "running"
    # of a further port only
    CLOSED = "closed"
    TAKEN = "taken"


@dataclass(frozen=True)
class Condition:
    """A state, since when (seconds since the epoch), and the cause if something went wrong."""

    state: State
    error: JlrError | None = None
    since: float = field(default_factory=time.time)

    def then(self, state: State, error: JlrError | None = None) -> Condition:
        """Return the next condition; `since` changes only with the state."""
        since = self.since if state is self.state else time.time()
        return Condition(state, None if error is None else without_history(error), since)

    def to_json(self) -> dict[str, Any]:
        detail = self.error.message if self.error else None
        return {"state": str(self.state), "since": self.since, "detail": detail}


def without_history(error: JlrError) -> JlrError:
    """Return a copy of an error without traceback and causes.

    A stored error would keep all objects of its frames alive, and grow each time it is raised.
    """
    return copy.copy(error)


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
        """Whether the login shell has programs or variables that a command by ssh lacks."""
        return bool(self.finds or self.docker_host)

    def head(self) -> str:
        """Return shell text that adds the login shell's PATH, behind the script's own."""
        lines = ""
        if self.helps and self.path:
            lines = f"PATH=${{PATH:+$PATH:}}{shlex.quote(':'.join(self.path))}; export PATH\n"
        if self.docker_host:
            lines += f"DOCKER_HOST={shlex.quote(self.docker_host)}; export DOCKER_HOST\n"
        return lines

    def looked(self) -> str:
        """Return where programs were looked for, in words."""
        if self.trouble:
            return f"no program was found for a command by ssh, and {self.trouble}"
        more = f", which adds {listed(self.path, _SHOWN)}" if self.path else ""
        return f"looked for on the PATH of ssh and of the login shell `{self.shell}`{more}"


def login_shell(message: Mapping[str, Any]) -> LoginShell:
    """Return the answer of a login shell that a message of the link has."""
    facts = {name: message[name] for name in LoginShell.__dataclass_fields__}
    return LoginShell(**facts | {name: tuple(facts[name]) for name in ("path", "finds")})
