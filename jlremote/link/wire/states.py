"""How a link describes itself to commands: its states, forwards and mounts, and the login shell."""

from __future__ import annotations

import copy
import shlex
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jlremote.errors import JlrError
from jlremote.link.wire.protocol import Message
from jlremote.text import listed

if TYPE_CHECKING:
    from jlremote.jupyter.endpoint import Endpoint, Server

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


def login_shell(message: Message) -> LoginShell:
    """Return the answer of a login shell that a message of the link has."""
    return LoginShell(**message | {name: tuple(message[name]) for name in ("path", "finds")})


# A session's name, and a further port of it; `None` for its Jupyter server.
ForwardKey = tuple[str, int | None]


@dataclass(frozen=True)
class ForwardStatus:
    """A forward of a session, as the link describes it."""

    session: str
    port: int | None  # the further port that it leads to, `None` for the session's Jupyter server
    local_port: int  # TCP port on 127.0.0.1
    state: str  # one of `State`
    since: float  # seconds since the epoch
    detail: str | None  # why it is in that state, where something went wrong
    endpoint: Endpoint
    failure: str | None  # why the last connection that was not served was turned away

    @property
    def server(self) -> Server:
        """The Jupyter server behind the forward; not for a further port."""
        assert self.endpoint.server is not None
        return self.endpoint.server


@dataclass(frozen=True)
class MountStatus:
    """A mount by the name of its record, as the link describes it.

    It is `connected` while its sshfs has an SFTP server on the host; `failure` tells why the host
    refused one when it was asked last.
    """

    name: str
    connected: bool
    failure: str | None


@dataclass(frozen=True)
class LinkStatus:
    """A link, as it describes itself."""

    state: str  # one of `State`
    since: float  # seconds since the epoch
    detail: str | None  # why it is in that state, where something went wrong
    forwards: tuple[ForwardStatus, ...]
    mounts: tuple[MountStatus, ...]
    notes: tuple[str, ...] = ()  # settings of ssh that jlr does not honour, low limits
    work: tuple[str, ...] = ()  # the shells, copies and ssh clients that end with the link

    def forward(self, session: str, port: int | None = None) -> ForwardStatus | None:
        """Return the forward to a session's server, or to a further port of it."""
        return next((f for f in self.forwards if (f.session, f.port) == (session, port)), None)

    def further(self, session: str) -> tuple[ForwardStatus, ...]:
        """Return the forwards to a session's further ports."""
        return tuple(f for f in self.forwards if f.session == session and f.port is not None)

    def mount(self, name: str) -> MountStatus | None:
        return next((mount for mount in self.mounts if mount.name == name), None)


def link_status(message: Message) -> LinkStatus:
    """Return the status in a link's answer; a forward is up at most as long as the link."""
    since = message["since"]
    forwards = (
        replace(f, since=max(f.since, since)) if f.state == State.UP else f
        for f in map(forward_status, message["forwards"])
    )
    mounts = tuple(MountStatus(**mount) for mount in message["mounts"])
    lists = {name: tuple(message[name]) for name in ("notes", "work")}
    return LinkStatus(**message | lists | {"forwards": tuple(forwards), "mounts": mounts})


def forward_status(message: Message) -> ForwardStatus:
    """Return the status of a forward that a message of the link has."""
    from jlremote.jupyter.endpoint import endpoint_from_json  # no command needs it at its start

    return ForwardStatus(**message | {"endpoint": endpoint_from_json(message["endpoint"])})
