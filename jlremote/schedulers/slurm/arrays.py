"""Arrays: several jobs of one submission, which differ by their index."""

from __future__ import annotations

import re

from jlremote.errors import Usage

_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_MOST = 1000  # as many as Slurm takes unless the site has changed MaxArraySize


def indices(array: str) -> tuple[int, ...]:
    """Return the indices that `1,3,5-9:2%4` stands for; behind `%` is how many run at a time.

    Raises:
        Usage: it is not written so, or there are too many.
    """
    listed, percent, together = array.strip().partition("%")
    parts = [_PART.fullmatch(part.strip()) for part in listed.split(",")]
    if percent and not together.isdecimal():
        parts = [None]
    found: set[int] = set()
    for part in parts:
        if part is None or part[3] == "0" or (part[2] and int(part[2]) < int(part[1])):
            raise Usage(
                f"`--array {array}` names no indices",
                hint="`--array 0-7`, `--array 1,3,5-9:2`; `--array 0-99%4` runs four at a time",
            )
        every = range(int(part[1]), int(part[2] or part[1]) + 1, int(part[3] or 1))
        found |= set(every[: _MOST + 1])
    if len(found) > _MOST:
        raise Usage(
            f"`--array {array}` makes more than {_MOST} jobs",
            hint="let each do several pieces of the work",
        )
    return tuple(sorted(found))
