"""Numbers and settings that make an SSH connection as fast as it can be."""

from __future__ import annotations

import contextlib

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

# OpenSSH's own first window; bytes.
FIRST_WINDOW = 2 << 20
LARGEST_PACKET = 32 << 10

_SMALLEST_WINDOW = 4 << 20
_LARGEST_WINDOW = 16 << 20
_BYTES_PER_SECOND = 320e6


def window_for(round_trip: float) -> int:
    """Return the receive window in bytes for a line whose round trip takes `round_trip` seconds."""
    return int(min(max(_SMALLEST_WINDOW, round_trip * _BYTES_PER_SECOND), _LARGEST_WINDOW))


def allow_many_descriptors() -> None:
    """Raise this process's limit of open files to what it may be.

    Each connection takes one. The usual limit of 1,024 (256 on macOS) is for programs that use
    `select`, and thirty pages with thirty WebSockets each come near it.
    """
    if resource is None:
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # macOS may refuse its own "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
