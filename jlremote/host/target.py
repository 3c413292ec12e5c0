"""Where the far end of a forward is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The far end of a forward, as the remote host sees it.

    Attributes:
        address: name or address that the SSH server connects to (inside the container when
            `relay` is set).
        port: TCP port there.
        relay: argv of a command on the host whose stdin and stdout speak the relay's protocol,
            for a server that listens on a container's own loopback only.
    """

    address: str
    port: int
    relay: tuple[str, ...] | None = None
