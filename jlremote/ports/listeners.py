"""What listens on one port where a session runs, and who holds it.

The script needs `sh`, `ls`, `grep`, `id` and `/proc`. A socket's owner is told by the kernel's own
table, its holder by the descriptors of the processes that share the script's file system: in a
container those are the container's, also on the host's network.
"""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.host.answers import FIELD, RECORD
from jlremote.host.socket_tables import LISTENING, Listener, read_listeners, socket_inodes
from jlremote.untrusted import whole_number

_PROBE = rf"""
listening=$({LISTENING} | grep ':PORT [0-9A-F]*:0000 ')
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
class Listeners:
    """The sockets that listen on a port."""

    user: int  # the id of the user who looked
    python: str  # an interpreter there, empty for none
    found: tuple[Listener, ...]  # the sockets, those first that a connection would meet first
    held: frozenset[str]  # inodes of the sockets that processes of the place hold


def probe(port: int) -> str:
    """Return the script that tells what listens on `port`."""
    return _PROBE.replace("PORT", f"{port:04X}")


def read(output: str) -> Listeners:
    """Return what the script's output tells.

    Raises:
        JlrError: it makes no sense, as in a container whose shell prints anything else.
    """
    records = (record.partition(FIELD) for record in output.split(RECORD))
    told = {name.strip(): value.strip() for name, _, value in records}
    try:
        found = sorted(read_listeners(told["listening"]), key=_rank)
        return Listeners(
            whole_number(told["user"]), told["python"], tuple(found), socket_inodes(told["held"])
        )
    except (KeyError, ValueError) as nonsense:
        raise JlrError(f"cannot read what listens there: {nonsense!r}") from nonsense


def _rank(listener: Listener) -> tuple[bool, bool]:
    """Order as the kernel does: the nearer address wins, and IPv4 over what also takes IPv4."""
    return listener.everywhere, not listener.is_ipv4
