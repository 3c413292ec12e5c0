"""Arrays: several jobs of one submission, which differ by their index."""

from __future__ import annotations

import re

from jlremote.errors import Usage
from jlremote.untrusted import count

_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_MOST = 4_000_001  # what the setting MaxArraySize may be at most
LIMIT = "scontrol show config 2>/dev/null | sed -n 's/^MaxArraySize *= *//p'"


def indices(array: str, limit: str) -> tuple[int, ...]:
    """Return the indices that `1,3,5-9:2%4` stands for; behind `%` is how many run at a time.

    `limit` is what `LIMIT` printed, the first index that the site refuses, or empty.

    Raises:
        Usage: it is not written so, or has an index that is too high.
    """
    listed, percent, together = array.strip().partition("%")
    parts = [_PART.fullmatch(part.strip()) for part in listed.split(",")]
    if percent and not together.isdecimal():
        parts = [None]
    found, refused = set[int](), count(limit.strip()) or _MOST
    for part in parts:
        if part is None or part[3] == "0" or (part[2] and int(part[2]) < int(part[1])):
            raise Usage(
                f"`--array {array}` names no indices",
                hint="`--array 0-7`, `--array 1,3,5-9:2`; `--array 0-99%4` runs four at a time",
            )
        last = int(part[2] or part[1])
        if last >= refused:
            raise Usage(
                f"`--array {array}`: Slurm takes indices up to {refused - 1} there",
                hint=f"`--array 0-{refused - 1}` is the longest; let each job do more of the work",
            )
        found.update(range(int(part[1]), last + 1, int(part[3] or 1)))
    return tuple(sorted(found))
