"""Where the far end of a forward is."""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.host.loopback import LOCALHOST, LOCALHOST_6

LOOPBACK = (LOCALHOST, LOCALHOST_6)


@dataclass(frozen=True)
class Target:
    """The far end of a forward, as the remote host sees it."""

    address: str  # what the SSH server connects to (in the container when `relay` is set)
    port: int  # TCP port there
    # A command on the host whose stdin and stdout speak the relay's protocol, for a server that
    # listens on a container's own loopback only.
    relay: tuple[str, ...] | None = None
    path: str = ""  # a unix socket in place of address and port
    network: str = ""  # the id of the container network on which nothing else may be
    node: bool = False  # whether it is a machine of a cluster, where others run programs, too
    # The process id there of a server that speaks TLS: the relay proves its certificate; else 0.
    tls_pid: int = 0

    @property
    def shared(self) -> bool:
        """Whether any user of that machine can take the port once its program has ended."""
        return self.node or (self.relay is None and self.address in LOOPBACK)
