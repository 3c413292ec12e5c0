"""The program that rsync runs in place of ssh: it passes bytes on to jlr's process, by two pipes.

It imports nothing of jlr: `python -I -S rsync_pipe.py FROM TO HOST COMMAND…`, with the numbers of
the pipes. First it writes the command, each word and the whole with a null byte at the end.
"""

from __future__ import annotations

import os
import sys
import threading


def main() -> None:
    """Pass bytes on both ways until the other half hangs up, or rsync does and all is sent."""
    source, sink = int(sys.argv[1]), int(sys.argv[2])
    if sys.platform != "win32":
        os.set_blocking(1, True)  # rsync expects ssh, which takes either
    words = [os.fsencode(word) + b"\0" for word in sys.argv[4:]]
    os.write(sink, b"".join(words) + b"\0")
    sending = threading.Thread(target=_send, args=(sink,), daemon=True)
    sending.start()
    try:
        _carry(source, 1)
    except BrokenPipeError:
        sending.join()


def _send(sink: int) -> None:
    try:
        _carry(0, sink)
    finally:
        os.close(sink)


def _carry(source: int, sink: int) -> None:
    while data := os.read(source, 128 << 10):
        while data:
            data = data[os.write(sink, data) :]


if __name__ == "__main__":
    main()
