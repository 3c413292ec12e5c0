"""A core for each of two machines, both of which are this one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def apart(laptop: Iterable[int], host: Iterable[int]) -> Iterator[None]:
    """Give the laptop's processes one core and the host's another, until the end of the block.

    Otherwise the laptop's programs take CPU time from the host's, which happens only here.
    Threads that begin meanwhile have the core of the one that began them.
    """
    allowed = os.sched_getaffinity(0)
    first, second, *_ = sorted(allowed)
    both = ((laptop, first), (host, second))
    places = [(task, core) for processes, core in both for task in _tasks(processes)]
    try:
        for task, core in places:
            _place(task, {core})
        yield
    finally:
        for task in _tasks((*laptop, *host)):
            _place(task, allowed)


def _tasks(processes: Iterable[int]) -> list[int]:
    """Return the threads of processes."""
    folders = (Path(f"/proc/{process}/task") for process in processes)
    return [int(task.name) for folder in folders for task in folder.iterdir()]


def _place(task: int, cores: set[int]) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        os.sched_setaffinity(task, cores)
