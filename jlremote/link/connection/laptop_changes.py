"""Changes of the laptop that a connection may not survive: sleep, and another network."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable

# Documentation addresses (RFC 5737 and RFC 3849); nothing is sent to them.
_FAR_AWAY = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_SLEPT_SECONDS = 1.0

Addresses = tuple[str | None, ...]


def seconds_asleep() -> float:
    """Return how many seconds the machine has slept since it booted, 0 if that is unknown.

    The boot clock runs while the machine sleeps and the monotonic clock does not.
    """
    if sys.platform != "linux":  # other systems have no such clock
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()


def own_addresses() -> Addresses:
    """Return the addresses that this machine sends from, by IPv4 and by IPv6."""
    return tuple(_own_address(family, far) for family, far in _FAR_AWAY)


def _own_address(family: socket.AddressFamily, far: str) -> str | None:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))  # UDP: this only looks up the route
            return str(probe.getsockname()[0])
    except OSError:
        return None


class LaptopChanges:
    """The state of the machine when it was last looked at: its sleep and its addresses."""

    def __init__(
        self,
        asleep: Callable[[], float] = seconds_asleep,
        addresses: Callable[[], Addresses] = own_addresses,
    ) -> None:
        self._asleep = asleep
        self._addresses = addresses
        self._seen = asleep(), addresses()

    def changed(self) -> bool:
        """Return whether the machine slept or changed networks since the last call.

        A connection may have died then, or a failed attempt may work now. A network that is gone is
        no reason to try: the same one may come back in time.
        """
        asleep_before, addresses_before = self._seen
        self._seen = asleep, addresses = self._asleep(), self._addresses()
        slept = asleep - asleep_before > _SLEPT_SECONDS
        return slept or (addresses != addresses_before and any(addresses))
