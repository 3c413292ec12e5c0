"""A TCP connection to the first address of a server that answers."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
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
        OSError: none did; the error is that of the address that failed last.
        NameNotResolved: there is no address of the wanted family.
    """
    found = (_Address(family, address) for family, *_, address in _addresses(destination))
    addresses = list(dict.fromkeys(found))
    if not addresses:
        raise NameNotResolved(
            f"`{destination.hostname}` has no address of the family `{destination.address_family}`",
            hint="check `AddressFamily` in your ssh config",
        )
    with selectors.DefaultSelector() as attempts:
        return _Caller(destination, addresses, greeting, attempts).call()


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
class _Address:
    family: socket.AddressFamily
    address: Any


@dataclass(frozen=True)
class _Caller:
    """Connects to each address in turn, again and again, until one of the attempts is answered.

    The kernel repeats a lost SYN after 1, 3, 7 and 15 s, so on a network that has just come back a
    first attempt may wait for long, while another one is answered at once; and what a NAT box or a
    proxy has swallowed is never answered. The first of each address waits all the same: a line may
    be slow. A server that is slow to greet is tried ever more rarely. Of several addresses, as
    login nodes have them, a dead one costs a second and not the whole `ConnectTimeout`.
    """

    destination: Destination
    addresses: list[_Address]  # those that have not failed, the next one first
    greeting: bytes
    attempts: selectors.BaseSelector
    first: dict[_Address, socket.socket] = field(default_factory=dict)

    def call(self) -> socket.socket:
        """Return the socket that was answered; the others are closed."""
        seconds = self.destination.step_seconds
        limit = time.monotonic() + seconds + ASK_AGAIN_SECONDS * (len(self.addresses) - 1)
        pauses = iter(SILENT_PAUSES)
        try:
            while (left := limit - time.monotonic()) > 0:
                self._begin()
                silent = any(key.events == READ for key in self._under_way())
                pause = next(pauses, LONGEST_SILENT_PAUSE) if silent else ASK_AGAIN_SECONDS
                answered = self._answered(min(left, pause))
                if answered is not None:
                    self.attempts.unregister(answered)
                    answered.settimeout(seconds)
                    return answered
                self._give_up(self._is_repeated)
        finally:
            self._give_up(lambda _: True)
        raise TimeoutError

    def _begin(self) -> None:
        """Call the next address that does not fail at once."""
        while True:
            next_one = self.addresses.pop(0)
            self.addresses.append(next_one)
            sock = socket.socket(next_one.family, socket.SOCK_STREAM)
            try:
                sock.setblocking(False)
                _bind(sock, self.destination, next_one.family)
                _raise(sock.connect_ex(next_one.address))
            except OSError as error:
                sock.close()
                self._drop(next_one, error)
                continue
            self.attempts.register(sock, WRITE, next_one)
            self.first.setdefault(next_one, sock)
            return

    def _drop(self, failed: _Address, error: OSError) -> None:
        """Call an address no more; raise its `error` if it is the last one."""
        self.addresses.remove(failed)
        self._give_up(lambda key: key.data == failed)
        if not self.addresses:
            raise error

    def _answered(self, seconds: float) -> socket.socket | None:
        """Return the first socket on which something arrives within `seconds`.

        Return `None` at once where an address fails, for another may be called.
        """
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            for key, _ in self.attempts.select(left):
                sock = cast("socket.socket", key.fileobj)
                if key.events == READ:
                    return sock
                try:
                    _raise(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
                    sock.send(self.greeting)  # nothing was sent before, so there is room
                except OSError as error:
                    self._drop(key.data, error)
                    return None
                self.attempts.modify(sock, READ, key.data)
        return None

    def _is_repeated(self, key: selectors.SelectorKey) -> bool:
        return key.events == WRITE and key.fileobj not in self.first.values()

    def _under_way(self) -> list[selectors.SelectorKey]:
        return list(self.attempts.get_map().values())

    def _give_up(self, given_up: Callable[[selectors.SelectorKey], bool]) -> None:
        for key in filter(given_up, self._under_way()):
            self.attempts.unregister(key.fileobj)
            cast("socket.socket", key.fileobj).close()


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
