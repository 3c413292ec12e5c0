"""Runs a command and passes on what it prints, in large pieces where much comes.

An engine's client writes each line of a log by itself. sshd is woken for it, and sends it as a
packet: 27,000 of them for 50 MB of noise, each of which wakes programs on both machines. From here
the next ones are read a moment later, all at once.

Its text runs in any Python from 3.6 with only the standard library, so it imports nothing of ours
and uses no newer syntax.

Run as `python3 -c TEXT COMMAND…`. SIGTERM is sent on to the command, whose exit status it has,
128 + N for signal N.
"""
# ruff: noqa: S606, SIM105 - it runs what it is given; `contextlib` takes long to load

import fcntl
import os
import select
import signal
import sys
import time

_PIECE = 1 << 20
# After a piece of so many bytes the next one may wait.
_MUCH = 8 << 10
_WAIT_SECONDS = 0.002
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which Python 3.10 names
_TERM = (signal.SIGTERM,)
# The shell says what is wrong with a command that it cannot run, and with which status it ends.
_RUN = ("/bin/sh", "-c", 'exec "$@"', "sh")


def _start(command: "list[str]") -> "tuple[int, dict[int, int]]":
    """Start the command; return its process and the pipes with its output, each with its target."""
    pipes = {}
    ends = []
    for target in (1, 2):
        source, end = os.pipe()
        try:
            fcntl.fcntl(source, _SET_PIPE_SIZE, _PIECE)
        except OSError:  # it is smaller then
            pass
        pipes[source] = target
        ends.append((end, target))
    child = os.fork()
    if not child:
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERM)
        for end, target in ends:
            os.dup2(end, target)
        os.execv(_RUN[0], _RUN + tuple(command))
    for end, _ in ends:
        os.close(end)
    return child, pipes


def _end(child: int) -> None:
    try:
        os.kill(child, signal.SIGTERM)
    except OSError:  # it has just ended, or is of another user
        pass


def _pass_on(pipes: "dict[int, int]") -> None:
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


def main(command: "list[str]") -> int:
    """Run the command to its end, or to that of its reader, and return the exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _TERM)
    child, pipes = _start(command)
    signal.signal(signal.SIGTERM, lambda *_: _end(child))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERM)
    try:
        _pass_on(pipes)
    except OSError:  # what reads it has gone
        _end(child)
    status = os.waitpid(child, 0)[1]
    return 128 + (status & 127) if status & 127 else status >> 8


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
