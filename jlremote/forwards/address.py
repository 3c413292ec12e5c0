"""The URLs of a forward, for programs and for browsers, and the report of a further port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jlremote.hosts.links import Unreached
from jlremote.jupyter.endpoint import hostname, url
from jlremote.laptop.sessions import PortRecord, SessionRecord
from jlremote.link.wire.states import ForwardStatus, State
from jlremote.place.host.addresses import LOCALHOST
from jlremote.times import utc


@dataclass(frozen=True)
class Address:
    """The two URLs of a page, with the token."""

    url: str  # for programs: on 127.0.0.1, which every library resolves
    page: str  # for a browser: the session's own name, where the server accepts it; else the same


def address_of(forward: ForwardStatus, name: str, path: str | None = None) -> Address:
    """Return the URLs of a forwarded server, or of a path in it; `name` is what it accepts."""
    server, port = forward.server, forward.local_port
    return Address(server.address(port, path), server.address(port, path, name))


@dataclass(frozen=True)
class PortReport:
    """A further port of a session as it is right now."""

    port: int  # TCP port in the container
    local_port: int | None  # TCP port on 127.0.0.1, `None` for a `running` program's
    state: str  # `up`, `closed` (nothing listens there), `taken` (by others), or a session's state
    since: str | None = None  # ISO 8601 in UTC, `None` where it is unknown; of a known `program`
    detail: str | None = None  # one sentence that says why, where the state is not `up`
    hostname: str = LOCALHOST  # its own name in a browser
    on_host: bool = False  # whether `port` is the host's, and not the container's
    program: str | None = None  # what listens there, where that was asked

    @property
    def address(self) -> Address:
        """The URLs of the port; its program may refuse the browser's name."""
        local = self.local_port
        return Address(*(url(name, local) if local else "" for name in (LOCALHOST, self.hostname)))

    def to_json(self) -> dict[str, Any]:
        facts = {name: value for name, value in vars(self).items() if name != "hostname"}
        return facts | {name: value or None for name, value in vars(self.address).items()}


def reports(
    record: SessionRecord, known: Sequence[ForwardStatus] | Unreached
) -> tuple[PortReport, ...]:
    """Return the reports of a session's further ports, by what the link knows of them."""
    if isinstance(known, Unreached):
        return tuple(report(record, port, known) for port in record.ports)
    held = {status.port: status for status in known}
    return tuple(report(record, port, held.get(port.port)) for port in record.ports)


def report(
    record: SessionRecord, port: PortRecord, known: ForwardStatus | Unreached | None
) -> PortReport:
    """Return the report of a port; `known` is `None` if the link does not forward it."""
    if known is None:
        again = f"jlr forward {record.selector} {port.port}{' --host' if port.on_host else ''}"
        known = Unreached(str(State.DOWN), None, f"it is not forwarded; `{again}` forwards it")
    if isinstance(known, Unreached):
        local, since = port.local_port, known.since
    else:
        local, since = known.local_port, utc(known.since)
    name = hostname(record.host, record.name, port.port)
    facts = (port.port, local, known.state, since, known.detail, name)
    return PortReport(*facts, port.on_host)
