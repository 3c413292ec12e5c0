"""Records of the local ports: the session that each has belonged to (see `forwards`)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from jlremote.laptop.records import NAMES, Records, tcp_port

Owner = tuple[str, str, int | None]
MOST = 500  # more ports than a person's sessions have; beyond it the oldest are forgotten


@dataclass(frozen=True)
class PortOwner:
    """The owner of a local port."""

    local_port: int  # TCP port on 127.0.0.1
    host: str  # what was typed after `ssh`
    name: str  # the session's
    port: int | None  # its further port, `None` for its Jupyter server
    last_used: float = field(default_factory=time.time)  # seconds since the epoch

    @property
    def number(self) -> str:
        """The local port as the name of its file."""
        return str(self.local_port)

    @property
    def owner(self) -> Owner:
        """The session's host, its name and its further port."""
        return self.host, self.name, self.port


_RECORDS = Records("ports", PortOwner, ("number",), local_port=tcp_port, **NAMES)
delete = _RECORDS.delete_key


def load_all() -> list[PortOwner]:
    """Return all owners, the latest first."""
    return sorted(_RECORDS.load_all(), key=lambda owner: -owner.last_used)


def save(owner: PortOwner) -> None:
    """Record the owner of a port, in place of any other.

    Raises:
        JlrError: it cannot be written.
    """
    _RECORDS.save(owner)
    for forgotten in load_all()[MOST:]:
        _RECORDS.delete(forgotten)
