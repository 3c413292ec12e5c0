"""The program that sshfs runs in place of ssh: it hands sshfs's socket to the link and ends.

Windows hands over no sockets: there it stays, and carries the bytes through the link's pipe.

Called as `python -m jlremote.mounts.connector NAME`, followed by ssh's arguments. sshfs starts it
with one end of a socket pair as stdin and stdout, at the first connection and again at every
request that finds the last one broken. That end travels to the link, which speaks SFTP on it.
Without a link both ends close here, and programs on the mount get an error at once.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

# The socket's path; not an argument, because sshfs cuts its command at spaces and knows no quotes.
DOOR_VARIABLE = "JLR_MOUNT_DOOR"
# The link sends this when it is ready to take the socket; a stopped link sends nothing.
WELCOME = b"+"
NAME_BYTES = 64
_PATIENCE_SECONDS = 10.0


def main() -> int:
    """Connect stdin and stdout with the link; return 1 if that failed."""
    if sys.platform == "win32":
        return _carried(sys.argv[1])
    name = sys.argv[1].encode()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(_PATIENCE_SECONDS)
            link.connect(os.environ[DOOR_VARIABLE])
            if link.recv(len(WELCOME)) != WELCOME:
                return 1
            socket.send_fds(link, [name], [0])
    except OSError:
        return 1
    return 0


def _carried(name: str) -> int:
    from jlremote.errors import JlrError
    from jlremote.hosts.attached_process import carry
    from jlremote.hosts.links import ASKS_NOTHING
    from jlremote.laptop.sessions import MOUNTS
    from jlremote.link.client.link import Link

    try:
        [mount] = [record for record in MOUNTS.load_all() if record.name == name]
        config = None if mount.ssh_config is None else Path(mount.ssh_config)
        with Link(mount.host, config, ASKS_NOTHING).serve_mount(name) as link:
            carry(link, *_streams())
    except (JlrError, OSError, ValueError):
        return 1
    return 0


def _streams() -> tuple[Callable[[int], bytes], Callable[[memoryview], int]]:
    """Return how to read from sshfs, and how to write to it.

    SSHFS-Win gives one socket for both: read as a file, it would seem to end at the first write.
    """
    import msvcrt

    try:
        sshfs = socket.socket(fileno=msvcrt.get_osfhandle(0))
    except OSError:  # a pipe
        return partial(os.read, 0), partial(os.write, 1)
    return sshfs.recv, sshfs.send


if __name__ == "__main__":
    sys.exit(main())
