"""Addresses of the loopback, which only a machine's own programs reach, and ends of forwards."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass

LOCALHOST, LOCALHOST_6 = "127.0.0.1", "::1"
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


def own_address(port: int) -> str:
    """Return the address that belongs to one local port, as 127.34.184.1 does to port 8888.

    Every address of 127.0.0.0/8 is this machine (RFC 1122, section 3.2.1.3), and servers accept it
    as they do 127.0.0.1. To a browser it is another host: cookies and service workers of other
    ports, which it would share among all ports of 127.0.0.1, stay away.
    """
    return f"127.{port >> 8}.{port & 0xFF}.1"


def has_own_addresses() -> bool:
    """Check that this machine's browser reaches all of 127.0.0.0/8 here.

    macOS has only 127.0.0.1, and a browser on Windows reaches of WSL only `localhost`.
    """
    return sys.platform != "darwin" and "microsoft" not in platform.release().lower()
