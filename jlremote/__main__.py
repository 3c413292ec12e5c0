"""`jlr`, and `python -m jlremote`."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from jlremote.errors import EXIT_INTERRUPTED

# How many new objects there are before Python looks for garbage; 700 by default. A command that
# loads makes a hundred thousand, all of which stay: to look at them took a tenth of its start.
_OBJECTS = 50_000


def main() -> int:
    """Run the command line and return its exit code."""
    gc.set_threshold(_OBJECTS)
    status: list[int] = []
    atexit.register(_end, status)
    status.append(run_command())
    return status[0]


def run_command() -> int:
    """Run the command line in a process that goes on, and return the exit code."""
    try:
        from jlremote.cli.boundary import run
    except KeyboardInterrupt:  # to load what would answer it takes a tenth of a second
        return EXIT_INTERRUPTED
    return run()


def _end(status: list[int]) -> None:
    """End the process once all other functions of `atexit` have run; they were registered later.

    The interpreter would take all modules apart first, which takes as long as to begin.
    """
    if not status:
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # it was closed before Ctrl-C stopped the first imports
                stream.flush()
    except (OSError, ValueError):  # the interpreter's own end reports it
        return
    os._exit(status[0])


if __name__ == "__main__":
    sys.exit(main())
