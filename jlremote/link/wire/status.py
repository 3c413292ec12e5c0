"""The status of a link, as the link tells it to a command."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jlremote.jupyter.endpoint import Endpoint, Server, endpoint_from_json
from jlremote.link.wire.protocol import Message
from jlremote.link.wire.states import State

# A session's name, and a further port of it; `None` for its Jupyter server.
ForwardKey = tuple[str, int | None]


@dataclass(frozen=True)
class ForwardStatus:
    """A forward of a session, as the link describes it."""

    session: str
    port: int | None  # the further port that it leads to, `None` for the session's Jupyter server
    local_port: int  # TCP port on 127.0.0.1
    state: str  # one of `link.wire.states.State`
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

    state: str  # one of `link.wire.states.State`
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
    mounts = (MountStatus(**mount) for mount in message["mounts"])
    notes, work = tuple(message["notes"]), tuple(message["work"])
    state, detail = message["state"], message["detail"]
    return LinkStatus(state, since, detail, tuple(forwards), tuple(mounts), notes, work)


def forward_status(message: Message) -> ForwardStatus:
    """Return the status of a forward that a message of the link has."""
    return ForwardStatus(**message | {"endpoint": endpoint_from_json(message["endpoint"])})
