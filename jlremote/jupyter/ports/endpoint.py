"""The far end of a forward: a session's Jupyter server, or a further port beside it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from jlremote.jupyter.server import Server
from jlremote.place.host.addresses import LOOPBACK, Target
from jlremote.times import left


@dataclass(frozen=True)
class Place:
    """Where a session runs, in terms that stay true for as long as the session lives."""

    runtime: str
    name: str  # the session's name, the container's where there is one
    container_id: str  # the engine's id; a container of the same name may replace it
    started_at: str  # when it was started, as the engine says it
    called: str = ""  # the container's name by now, where it was renamed


@dataclass(frozen=True)
class Endpoint:
    """A port of a place, and the way there."""

    place: Place
    port: int  # TCP port there
    # the Jupyter server that listens on it; `None` for a further port, where any program may
    # listen now or later
    server: Server | None = None
    python: str = ""  # an interpreter there, for a relay; empty if none is known
    target: Target | None = None  # the way there as it was proved last, `None` before
    on_host: bool = False  # whether it is the host's own port, where its services listen, too
    until: float | None = None  # when a time limit ends the place, in seconds since the epoch

    @property
    def further_port(self) -> int | None:
        """The port where no server is known on it, `None` for a session's server."""
        return self.port if self.server is None else None

    @property
    def changeable(self) -> bool:
        """Whether another program behind the relay can take the further port at any time.

        On a node that is proved after each connection.
        """
        target = self.target if self.server is None else None
        if target is None or target.node:
            return False
        return target.relay is not None and target.address in LOOPBACK

    def to_json(self) -> dict[str, Any]:
        """Return the endpoint as it crosses the link's socket, which only its owner can read."""
        return asdict(self)


def endpoint_from_json(message: dict[str, Any]) -> Endpoint:
    """Return the endpoint that `to_json` described."""
    server, target = message["server"], message["target"]
    return Endpoint(
        Place(**message["place"]),
        message["port"],
        None if server is None else Server(**server),
        message["python"],
        None if target is None else _target(**target),
        message["on_host"],
        message["until"],
    )


def _target(relay: list[str] | None, **facts: Any) -> Target:
    return Target(relay=None if relay is None else tuple(relay), **facts)


WARNED_SECONDS = 900


def time_limit_warning(host: str, session: str, until: float | None) -> str | None:
    """Return the sentence about a limit that ends a session at `until`, seconds since the epoch.

    It is `None` where there is no limit, or more time is left than `WARNED_SECONDS`.
    """
    if until is None or until - time.time() > WARNED_SECONDS:
        return None
    ends = f"its time limit ends it in {left(until)}, and its kernels with it"
    return f"{ends}; `jlr renew {host}/{session}` queues a successor"
