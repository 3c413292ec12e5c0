"""The program that sshfs runs in place of ssh: it hands sshfs's socket to the link and ends.

Called as `python -m jlremote.mounts.connector NAME`, followed by ssh's arguments. sshfs starts it
with one end of a socket pair as stdin and stdout, at the first connection and again at every
request that finds the last one broken. That end travels to the link, which speaks SFTP on it.
Without a link both ends close here, and programs on the mount get an error at once.
"""

from __future__ import annotations

import os
import socket
import sys

# The socket's path; not an argument, because sshfs cuts its command at spaces and knows no quotes.
DOOR_VARIABLE = "JLR_MOUNT_DOOR"
# The link sends this when it is ready to take the socket; a stopped link sends nothing.
WELCOME = b"+"
NAME_BYTES = 64
_PATIENCE_SECONDS = 10.0


def main() -> int:
    """Hand stdin over to the link; return 1 if that failed."""
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


if __name__ == "__main__":
    sys.exit(main())
