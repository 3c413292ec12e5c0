"""The kernel's table of unix sockets: what listens on which path (unix(7))."""

from __future__ import annotations

# Prints the rows of stream sockets that listen: 00010000 is __SO_ACCEPTCON.
LISTENING = "grep ' 00010000 0001 01 ' /proc/net/unix 2>/dev/null"
_COLUMNS = 8  # the last two are the inode and the path


def listening_inodes(table: str, path: str) -> frozenset[str]:
    """Return the inodes of the sockets that listen on `path`, by the rows of `LISTENING`."""
    rows = (line.split(maxsplit=_COLUMNS - 1) for line in table.splitlines())
    return frozenset(row[-2] for row in rows if len(row) == _COLUMNS and row[-1] == path)
