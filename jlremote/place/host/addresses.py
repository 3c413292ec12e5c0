"""Addresses of the loopback, ends of forwards, and the kernel's tables of sockets (proc(5))."""

from __future__ import annotations

import os
import platform
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from jlremote.untrusted import whole_number

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
    """Return the address that belongs to one local port, as 127.34.184.1 does to port 8888."""
    # All of 127.0.0.0/8 is this machine (RFC 1122, section 3.2.1.3). To a browser each address is
    # another host, so cookies and service workers of other ports stay away.
    return f"127.{port >> 8}.{port & 0xFF}.1"


def has_own_addresses() -> bool:
    """Check that this machine's browser reaches all of 127.0.0.0/8 here."""
    # macOS has only 127.0.0.1, and a browser on Windows reaches of WSL only `localhost`.
    return sys.platform != "darwin" and "microsoft" not in platform.release().lower()


# Prints the rows of sockets that listen: 0A is TCP_LISTEN.
LISTENING = "grep -h ' 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null"
_COLUMNS = 10
# The same of stream sockets with paths: 00010000 is __SO_ACCEPTCON.
LISTENING_UNIX = "grep ' 00010000 0001 01 ' /proc/net/unix 2>/dev/null"
_UNIX_COLUMNS = 8  # the last two are the inode and the path


@dataclass(frozen=True)
class Listener:
    """A socket that listens."""

    address: str  # what it is bound to, in the usual notation
    port: int
    user: int  # the id of its owner
    inode: str  # what the descriptors of the processes that hold it name it by

    @property
    def everywhere(self) -> bool:
        return self.address in ("0.0.0.0", "::")  # noqa: S104

    @property
    def is_ipv4(self) -> bool:
        return ":" not in self.address


def read_listeners(table: str) -> tuple[Listener, ...]:
    """Return the sockets from the rows that `LISTENING` printed; skip other lines."""
    found = []
    for line in table.splitlines():
        row = line.split()
        if len(row) >= _COLUMNS:
            digits, _, port = row[1].partition(":")
            with suppress(ValueError):  # a container can print what it likes
                found.append(
                    Listener(_address(digits), int(port, 16), whole_number(row[7]), row[9])
                )
    return tuple(found)


def is_own(table: str, client_port: int, port: int) -> bool:
    """Return whether the client of a connection to `port` is a socket of this user."""
    far = f":{port:04X}"
    its = (row for row in table.splitlines() if "".join(row.split()[2:3]).endswith(far))
    clients = [row for row in read_listeners("\n".join(its)) if row.port == client_port]
    return any(row.address == LOCALHOST and row.user == os.getuid() for row in clients)


def socket_inodes(descriptors: str) -> frozenset[str]:
    """Return the sockets in what `ls -l /proc/PID/fd` printed."""
    return frozenset(re.findall(r"socket:\[(\d+)\]", descriptors))


def _address(digits: str) -> str:
    words = (bytes.fromhex(digits[at : at + 8])[::-1] for at in range(0, len(digits), 8))
    raw = b"".join(words)
    if len(raw) == IPv4Address(0).max_prefixlen // 8:
        return str(IPv4Address(raw))
    address = IPv6Address(raw)
    return str(address.ipv4_mapped or address)


def listening_inodes(table: str, path: str) -> frozenset[str]:
    """Return the inodes of the sockets that listen on `path`, by the rows of `LISTENING_UNIX`."""
    rows = (line.split(maxsplit=_UNIX_COLUMNS - 1) for line in table.splitlines())
    return frozenset(row[-2] for row in rows if len(row) == _UNIX_COLUMNS and row[-1] == path)
