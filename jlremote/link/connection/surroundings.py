"""What happens to the laptop that a connection may not survive: sleep, and another network."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable

# Nothing is sent to them: documentation addresses, RFC 5737 and RFC 3849.
_FAR_AWAY = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_SLEPT_SECONDS = 1.0

Addresses = tuple[str | None, ...]


def seconds_asleep() -> float:
    """Return how long the machine has slept since it booted, as far as it can be told.

    The boot clock runs while the machine sleeps and the monotonic clock does not.
    """
    if sys.platform != "linux":  # other systems have no such clock
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()


def own_addresses() -> Addresses:
    """Return the addresses that this machine would send from, by IPv4 and by IPv6."""
    return tuple(_own_address(family, far) for family, far in _FAR_AWAY)


def _own_address(family: socket.AddressFamily, far: str) -> str | None:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))  # UDP: this only looks up the route
            return str(probe.getsockname()[0])
    except OSError:
        return None


class Surroundings:
    """Tells whether the machine slept, or came to another network, since it was last asked."""

    def __init__(
        self,
        asleep: Callable[[], float] = seconds_asleep,
        addresses: Callable[[], Addresses] = own_addresses,
    ) -> None:
        self._asleep = asleep
        self._addresses = addresses
        self._seen = asleep(), addresses()

    def changed(self) -> bool:
        """Return whether a connection may have died, or a failed attempt may work now.

        A network that went away is no reason to try: the same one may come back in time.
        """
        asleep_before, addresses_before = self._seen
        self._seen = asleep, addresses = self._asleep(), self._addresses()
        slept = asleep - asleep_before > _SLEPT_SECONDS
        return slept or (addresses != addresses_before and any(addresses))
