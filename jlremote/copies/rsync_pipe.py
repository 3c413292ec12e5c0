"""The program that rsync runs in place of ssh: it gives its streams to jlr's process, and waits.

It imports nothing of jlr: `python -I -S rsync_pipe.py SOCKET HOST COMMAND…`, with the number of a
socket. Its first message is the command, each word and the whole with a null byte at the end, and
carries stdin, stdout and stderr.
"""

from __future__ import annotations

import os
import socket
import sys


def main() -> None:
    """Give away the streams, and wait until the other half has ended."""
    if sys.platform == "win32":
        raise NotImplementedError
    words = [os.fsencode(word) + b"\0" for word in sys.argv[3:]]
    message = b"".join(words) + b"\0"
    with socket.socket(fileno=int(sys.argv[1])) as jlr:
        for one in (0, 1):
            os.set_blocking(one, True)  # rsync expects ssh, which takes either
        sent = socket.send_fds(jlr, [message], [0, 1, 2])
        jlr.sendall(message[sent:])
        for one in (0, 1):
            os.close(one)
        jlr.recv(1)


if __name__ == "__main__":
    main()
