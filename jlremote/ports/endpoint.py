"""A further port of a session's container; what a forward beside Jupyter's leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jlremote.host.target import Target
from jlremote.jupyter.server import Place


def port_name(session: str, port: int) -> str:
    """Return what the link calls such a forward; no session's name has a colon."""
    return f"{session}:{port}"


@dataclass(frozen=True)
class PortEndpoint:
    """A port of a place, whatever listens on it now or later.

    Attributes:
        place: where.
        port: TCP port there.
        python: an interpreter there, for a relay; empty if none is known.
        target: the way there as it was seen last, `None` before.
    """

    place: Place
    port: int
    python: str = ""
    target: Target | None = None

    @property
    def name(self) -> str:
        """What the link calls it."""
        return port_name(self.place.name, self.port)

    @property
    def shared(self) -> bool:
        """Whether the port belongs to a host on which others can take it at any time."""
        return self.target is not None and self.target.address in ("127.0.0.1", "::1")

    def to_json(self) -> dict[str, Any]:
        """Return the endpoint as it crosses the link's socket; the way there is the link's."""
        return {"place": vars(self.place), "port": self.port, "python": self.python}


def port_endpoint_from_json(message: dict[str, Any]) -> PortEndpoint:
    """Return the endpoint that `to_json` described."""
    return PortEndpoint(Place(**message["place"]), message["port"], message["python"])
