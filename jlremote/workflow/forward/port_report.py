"""The forward of a further port, as `jlr forward` reports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PortReport:
    """The forward of a further port of a session as it is right now.

    Attributes:
        port: TCP port in the container.
        local_port: TCP port on 127.0.0.1.
        state: `up`, `closed` (nothing listens there), `taken` (by others), or a session's state.
        since: ISO 8601 in UTC, `None` where nobody can tell.
        detail: one sentence that says why, where the state is not `up`.
    """

    port: int
    local_port: int
    state: str
    since: str | None = None
    detail: str | None = None

    @property
    def url(self) -> str:
        """The local address."""
        return f"http://127.0.0.1:{self.local_port}/"

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        return dict(vars(self))
