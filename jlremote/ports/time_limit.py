"""The time limit of a place, as of a session that is a job: a warning before it is over."""

from __future__ import annotations

import time

from jlremote.times import left

WARNED_SECONDS = 900


def warning(host: str, session: str, until: float | None) -> str | None:
    """Return the sentence about a limit that ends a session at `until`, seconds since the epoch.

    It is `None` where there is no limit, or more time is left than `WARNED_SECONDS`.
    """
    if until is None or until - time.time() > WARNED_SECONDS:
        return None
    ends = f"its time limit ends it in {left(until)}, and its kernels with it"
    return f"{ends}; `jlr renew {host}/{session}` queues a successor"
