"""A TCP connection to the first address of a server that answers."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from dataclasses import dataclass
from typing import Any, cast

from jlremote.errors import NameNotResolved
from jlremote.ssh.config.destination import Destination

ASK_AGAIN_SECONDS = 1.0
# Where there is a connection and no greeting.
SILENT_PAUSES = (1.5, 1.5, 1.5, 2.0, 2.0)
LONGEST_SILENT_PAUSE = 3.0
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}


def connect_tcp(destination: Destination, greeting: bytes) -> socket.socket:
    """Return a socket to the first address that answers, on which the server has greeted.

    Our own `greeting` is sent first; some servers wait for it.

    Raises:
        OSError: none did; the error is the last address's.
        NameNotResolved: there is no address of the wanted family.
    """
    last: OSError | None = None
    for family, _, _, _, address in _addresses(destination):
        try:
            with selectors.DefaultSelector() as attempts:
                return _Caller(destination, family, address, greeting, attempts).call()
        except OSError as error:
            last = error
    raise last or NameNotResolved(
        f"`{destination.hostname}` has no address of the family `{destination.address_family}`",
        hint="check `AddressFamily` in your ssh config",
    )


def _addresses(destination: Destination) -> list[Any]:
    host, wanted = destination.hostname, _FAMILIES[destination.address_family]
    try:
        return socket.getaddrinfo(host, destination.port, wanted, socket.SOCK_STREAM)
    except UnicodeError as error:  # a part between dots is empty or has more than 63 letters
        raise NameNotResolved(
            f"`{host}` cannot be the name of a host: {error.__cause__ or error}",
            hint="check the name, and `HostName` in your ssh config",
        ) from error


@dataclass(frozen=True)
class _Caller:
    """Connects to one address repeatedly, until one of the attempts is answered.

    The kernel repeats a lost SYN after 1, 3, 7 and 15 s, so on a network that has just come back a
    first attempt may wait for long, while another one is answered at once; and what a NAT box or a
    proxy has swallowed is never answered. The first waits all the same: a line may be slow.
    A server that is slow to greet is tried ever more rarely.
    """

    destination: Destination
    family: socket.AddressFamily
    address: Any
    greeting: bytes
    attempts: selectors.BaseSelector

    def call(self) -> socket.socket:
        """Return the socket that was answered; the others are closed."""
        seconds = self.destination.step_seconds
        limit = time.monotonic() + seconds
        pauses = iter(SILENT_PAUSES)
        first = self._begin()
        try:
            while (left := limit - time.monotonic()) > 0:
                silent = any(key.events == READ for key in self.attempts.get_map().values())
                pause = next(pauses, LONGEST_SILENT_PAUSE) if silent else ASK_AGAIN_SECONDS
                answered = self._answered(min(left, pause))
                if answered is not None:
                    self.attempts.unregister(answered)
                    answered.settimeout(seconds)
                    return answered
                self._give_up(but=first)
                self._begin()
        finally:
            self._give_up()
        raise TimeoutError

    def _begin(self) -> socket.socket:
        sock = socket.socket(self.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            _bind(sock, self.destination, self.family)
            _raise(sock.connect_ex(self.address))
        except BaseException:
            sock.close()
            raise
        self.attempts.register(sock, WRITE)
        return sock

    def _answered(self, seconds: float) -> socket.socket | None:
        """Return the first socket on which something arrives within `seconds`."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            for key, _ in self.attempts.select(left):
                sock = cast("socket.socket", key.fileobj)
                if key.events == READ:
                    return sock
                _raise(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
                sock.send(self.greeting)  # nothing was sent before, so there is room
                self.attempts.modify(sock, READ)
        return None

    def _give_up(self, but: socket.socket | None = None) -> None:
        """Close all attempts; with `but` only those without a connection, and not that one."""
        for key in list(self.attempts.get_map().values()):
            sock = cast("socket.socket", key.fileobj)
            if but is None or (sock is not but and key.events == WRITE):
                self.attempts.unregister(sock)
                sock.close()


def _raise(code: int) -> None:
    if code not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
        raise OSError(code, os.strerror(code))


def _bind(sock: socket.socket, destination: Destination, family: socket.AddressFamily) -> None:
    ours = destination.bind_address
    if ours is None:
        return
    try:
        found = socket.getaddrinfo(ours, 0, family, socket.SOCK_STREAM)
        sock.bind(found[0][4])
    except (OSError, UnicodeError) as error:  # no address of this machine, or no address at all
        reason = getattr(error, "strerror", None) or "it cannot be an address"
        raise OSError(errno.EADDRNOTAVAIL, f"`BindAddress {ours}`: {reason}") from error
