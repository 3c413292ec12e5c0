"""Runs a command and passes on what it prints, in large pieces where much comes.

An engine's client writes each line of a log by itself. sshd is woken for it, and sends it as a
packet: 27,000 of them for 50 MB of noise, each of which wakes programs on both machines. From here
the next ones are read a moment later, all at once.

Its arguments are the command. SIGTERM is sent on to that, and its exit status is the command's, 128
+ N for signal N.
"""

import contextlib
import fcntl
import os
import select
import signal
import time
from typing import Dict, List, Tuple

from jlremote.remote.orphans import begin, exit_code

_PIECE = 1 << 20
# After a piece of so many bytes the next one may wait.
_MUCH = 8 << 10
_WAIT_SECONDS = 0.002
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which Python 3.10 names
_TERM = (signal.SIGTERM,)


def _start(command: List[str]) -> Tuple[int, Dict[int, int]]:
    """Start the command; return its process and the pipes with its output, each with its target."""
    pipes = {}
    ends = []
    for target in (1, 2):
        source, end = os.pipe()
        with contextlib.suppress(OSError):  # it is smaller then
            fcntl.fcntl(source, _SET_PIPE_SIZE, _PIECE)
        pipes[source] = target
        ends.append((end, target))
    words = [os.fsencode(word) for word in command]
    child = begin(words, lambda: [os.dup2(*pair) for pair in ends])
    for end, _ in ends:
        os.close(end)
    return child, pipes


def _end(child: int) -> None:
    with contextlib.suppress(OSError):  # it has just ended, or is of another user
        os.kill(child, signal.SIGTERM)


def _pass_on(pipes: Dict[int, int]) -> None:
    """Write what comes until both pipes end."""
    poll = select.poll()
    for source in pipes:
        poll.register(source, select.POLLIN)
    while pipes:
        most = 0
        for source, _ in poll.poll():
            piece = memoryview(os.read(source, _PIECE))
            most = max(most, len(piece))
            if not piece:
                poll.unregister(source)
                del pipes[source]
            while piece:
                piece = piece[os.write(pipes[source], piece) :]
        if pipes and most >= _MUCH:
            time.sleep(_WAIT_SECONDS)


def main(command: List[str]) -> int:
    """Run the command to its end, or to that of its reader, and return the exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _TERM)
    child, pipes = _start(command)
    signal.signal(signal.SIGTERM, lambda *_: _end(child))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERM)
    try:
        _pass_on(pipes)
    except OSError:  # what reads it has gone
        _end(child)
    return exit_code(os.waitpid(child, 0)[1])
