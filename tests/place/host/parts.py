"""A `sudo` of old, and rows of the table of sockets."""

from __future__ import annotations

# Like 1.9.5, it passes no signal on that comes from its own process group.
OLD_SUDO = """\
#!/bin/sh
trap '' TERM INT
shift 2
"$@" & child=$!
trap 'kill -KILL $child; exit 129' HUP
wait
"""


ANYWHERE, LOOPBACK = "00000000", "0100007F"
ANYWHERE_6, LOOPBACK_6 = "0" * 32, "0" * 24 + "01000000"


def row(address: str, port: int = 6006, user: int = 1000, inode: int = 77) -> str:
    """Return a line of /proc/net/tcp as the kernel writes it."""
    remote = f"{'0' * len(address)}:0000"
    return f"   0: {address}:{port:04X} {remote} 0A 0:0 00:0 0 {user:5} 0 {inode} 1 0 100 0 0 10 0"
