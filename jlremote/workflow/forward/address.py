"""The URLs of a session's page: one for programs, one for browsers."""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.link.wire.status import ForwardStatus


@dataclass(frozen=True)
class Address:
    """The URLs of a page, with the token."""

    url: str  # on 127.0.0.1, which every library resolves
    page: str  # of the session's own origin, where the server accepts that name; else the same


def address_of(forward: ForwardStatus, name: str, path: str | None = None) -> Address:
    """Return the URLs of a forwarded server, or of a path in it; `name` is what it accepts."""
    server, port = forward.server, forward.local_port
    return Address(server.address(port, path), server.address(port, path, name))
