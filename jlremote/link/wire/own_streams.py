"""A command's own stdin, stdout and stderr, as it passes them to the link."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress


class OwnStreams:
    """Descriptors that the link can read and write in the command's place, and never waits for.

    A pipe is opened once more, because a flag set on the one that is here would count for every
    program that has it. Only Linux can do so (`/proc/self/fd`). A terminal as stdin is not passed:
    who reads it without belonging to it would take the keys of other programs.
    """

    def __init__(self, descriptors: Sequence[int]) -> None:
        self.descriptors = tuple(descriptors)

    @classmethod
    def opened(cls, stdin: int, stdout: int, stderr: int) -> OwnStreams | None:
        """Return the streams of these descriptors; `None` if one of them cannot be passed."""
        if sys.platform != "linux" or os.isatty(stdin):
            return None
        opened: list[int] = []
        try:
            opened += [_opened(stdin, os.O_RDONLY)]
            opened += [_opened(stdout, os.O_WRONLY), _opened(stderr, os.O_WRONLY)]
        except OSError:
            _close(opened)
            return None
        return cls(opened)

    def close(self) -> None:
        """Close these copies; twice is fine."""
        _close(self.descriptors)
        self.descriptors = ()


def _opened(descriptor: int, direction: int) -> int:
    if sys.platform == "win32":
        raise NotImplementedError
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or os.isatty(descriptor):
        path = f"/proc/self/fd/{descriptor}"
        return os.open(path, direction | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    return os.dup(descriptor)


def _close(descriptors: Sequence[int]) -> None:
    for one in descriptors:
        with suppress(OSError):
            os.close(one)
