"""A link as it tells itself to a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jlremote.jupyter.server import Endpoint, endpoint_from_json
from jlremote.ports.endpoint import PortEndpoint, port_endpoint_from_json

Message = dict[str, Any]


@dataclass(frozen=True)
class ForwardStatus:
    """A session's forward as the link tells it.

    Attributes:
        name: the session's name.
        local_port: TCP port on 127.0.0.1.
        state: one of `link.states.State`.
        since: seconds since the epoch.
        detail: why it is in that state, where something went wrong.
        endpoint: where it leads.
        failure: why the last connection that was not served was turned away.
    """

    name: str
    local_port: int
    state: str
    since: float
    detail: str | None
    endpoint: Endpoint
    failure: str | None


@dataclass(frozen=True)
class PortStatus:
    """The forward of a further port of a session; see `ForwardStatus`."""

    name: str
    local_port: int
    state: str
    since: float
    detail: str | None
    endpoint: PortEndpoint


@dataclass(frozen=True)
class MountStatus:
    """A mount as the link tells it.

    Attributes:
        name: the record's name.
        connected: whether its sshfs has an SFTP server on the host.
        failure: why the host refused one when it was asked last.
    """

    name: str
    connected: bool
    failure: str | None


@dataclass(frozen=True)
class LinkStatus:
    """A link as it tells itself.

    Attributes:
        state: one of `link.states.State`.
        since: seconds since the epoch.
        detail: why it is in that state, where something went wrong.
        forwards: the sessions' forwards.
        ports: the forwards of their further ports.
        mounts: what sshfs reaches through it.
        notes: what the user's ssh settings ask for that jlr does not do.
    """

    state: str
    since: float
    detail: str | None
    forwards: tuple[ForwardStatus, ...]
    ports: tuple[PortStatus, ...]
    mounts: tuple[MountStatus, ...]
    notes: tuple[str, ...] = ()

    def forward(self, name: str) -> ForwardStatus | None:
        """Return the forward of one session."""
        return next((forward for forward in self.forwards if forward.name == name), None)

    def ports_of(self, session: str) -> tuple[PortStatus, ...]:
        """Return the forwards of one session's further ports."""
        return tuple(port for port in self.ports if port.endpoint.place.name == session)

    def port(self, session: str, port: int) -> PortStatus | None:
        """Return the forward of one of them."""
        return next((p for p in self.ports_of(session) if p.endpoint.port == port), None)

    def mount(self, name: str) -> MountStatus | None:
        """Return one mount."""
        return next((mount for mount in self.mounts if mount.name == name), None)


def link_status(message: Message) -> LinkStatus:
    """Return what a link answered to `status`."""
    of_sessions = (told for told in message["forwards"] if leads_to_a_server(told))
    of_ports = (told for told in message["forwards"] if not leads_to_a_server(told))
    return LinkStatus(
        message["state"],
        message["since"],
        message["detail"],
        tuple(map(forward_status, of_sessions)),
        tuple(map(port_status, of_ports)),
        tuple(MountStatus(**mount) for mount in message["mounts"]),
        tuple(message["notes"]),
    )


def forward_status(message: Message) -> ForwardStatus:
    """Return what a link told of a session's forward."""
    endpoint = endpoint_from_json(message["endpoint"])
    return ForwardStatus(**_facts(message), endpoint=endpoint, failure=message["failure"])


def port_status(message: Message) -> PortStatus:
    """Return what a link told of a further port's forward."""
    return PortStatus(**_facts(message), endpoint=port_endpoint_from_json(message["endpoint"]))


def leads_to_a_server(message: Message) -> bool:
    """Return whether a message speaks of a session's own forward, and not of a further port."""
    return "server" in message["endpoint"]


def _facts(message: Message) -> Message:
    return {key: message[key] for key in ("name", "local_port", "state", "since", "detail")}
