"""The addresses of a machine that only its own programs reach."""

from __future__ import annotations

import platform
import sys

LOCALHOST, LOCALHOST_6 = "127.0.0.1", "::1"


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
