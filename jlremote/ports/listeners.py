"""What listens on one port where a session runs, and who holds it.

The script needs `sh`, `ls`, `grep`, `id` and `/proc`. A socket's owner is told by the kernel's own
table (proc(5), `/proc/net/tcp`), its holder by the descriptors of the processes that share the
script's file system: in a container those are the container's, also on the host's network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from jlremote.errors import JlrError

FIELD, RECORD = "\037", "\036"
_COLUMNS = 10

_PROBE = r"""
listening=$(grep -h ':PORT [0-9A-F]*:0000 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
set --
if [ -n "$listening" ]; then
  for process in /proc/[0-9]*; do
    [ "$process/ns/mnt" -ef /proc/self/ns/mnt ] && set -- "$@" "$process/fd"
  done
fi
printf 'user\037%s\036' "$(id -u)"
printf 'python\037%s\036' "$(command -v python3 || command -v python)"
printf 'listening\037%s\036' "$listening"
printf 'held\037%s\036' "$([ $# = 0 ] || ls -l "$@" 2>/dev/null | grep 'socket:')"
"""


@dataclass(frozen=True)
class Listener:
    """A socket that listens on the port.

    Attributes:
        address: what it is bound to, in the usual notation.
        user: the id of the user who made it.
        held: whether a process of the place holds it.
    """

    address: str
    user: int
    held: bool

    @property
    def everywhere(self) -> bool:
        """Whether it is bound to all addresses."""
        return self.address in ("0.0.0.0", "::")  # noqa: S104


@dataclass(frozen=True)
class Listeners:
    """What the probe found.

    Attributes:
        user: the id of the user who looked.
        python: an interpreter there, empty for none.
        found: the sockets, those first that a connection would meet first.
    """

    user: int
    python: str
    found: tuple[Listener, ...]


def probe(port: int) -> str:
    """Return the script that tells what listens on `port`."""
    return _PROBE.replace("PORT", f"{port:04X}")


def read(output: str) -> Listeners:
    """Return what the script's output tells.

    Raises:
        JlrError: it tells nothing that makes sense, as a container may whose shell lies.
    """
    records = (record.partition(FIELD) for record in output.split(RECORD))
    told = {name.strip(): value.strip() for name, _, value in records}
    try:
        held = set(re.findall(r"socket:\[(\d+)\]", told["held"]))
        rows = (line.split() for line in told["listening"].splitlines())
        found = [_listener(row, held) for row in rows if len(row) >= _COLUMNS]
        return Listeners(int(told["user"]), told["python"], tuple(sorted(found, key=_rank)))
    except (KeyError, ValueError) as nonsense:
        raise JlrError(f"what listens there cannot be told: {nonsense!r}") from nonsense


def _listener(row: list[str], held: set[str]) -> Listener:
    return Listener(_address(row[1].partition(":")[0]), int(row[7]), row[9] in held)


def _rank(listener: Listener) -> tuple[bool, bool]:
    """Order as the kernel does: the nearer address wins, and IPv4 over what also takes IPv4."""
    return listener.everywhere, ":" in listener.address


def _address(digits: str) -> str:
    """Return an address of the table: words of 32 bits, each with its last byte first."""
    words = (bytes.fromhex(digits[at : at + 8])[::-1] for at in range(0, len(digits), 8))
    raw = b"".join(words)
    if len(raw) == IPv4Address(0).max_prefixlen // 8:
        return str(IPv4Address(raw))
    address = IPv6Address(raw)
    return str(address.ipv4_mapped or address)
