"""Numbers and settings that make an SSH connection as fast as it can be."""

from __future__ import annotations

# OpenSSH's own first window; bytes.
FIRST_WINDOW = 2 << 20
LARGEST_PACKET = 32 << 10

_SMALLEST_WINDOW = 4 << 20
_LARGEST_WINDOW = 16 << 20
_BYTES_PER_SECOND = 320e6


def window_for(round_trip: float) -> int:
    """Return the receive window in bytes for a line whose round trip takes `round_trip` seconds."""
    return int(min(max(_SMALLEST_WINDOW, round_trip * _BYTES_PER_SECOND), _LARGEST_WINDOW))
