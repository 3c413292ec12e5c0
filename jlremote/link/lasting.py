"""Loops of the link's threads, which go on after an unexpected exception."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0


def keep_going(
    name: str,
    loop: Callable[[], None],
    *,
    wanted: Callable[[], bool] = lambda: True,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Run `loop` until it returns; after an exception log it, pause and run it again.

    Otherwise the link would lose the thread without a word: a dead connection would stay `up`, and
    a port would accept nothing. The pauses double while `loop` fails at once.
    """
    seconds = FIRST_PAUSE
    while wanted():
        began = time.monotonic()
        try:
            loop()
        except Exception:
            log.exception("the loop `%s` failed; it goes on", name)
        else:
            return
        if time.monotonic() - began > LONGEST_PAUSE:
            seconds = FIRST_PAUSE
        pause(seconds)
        seconds = min(2 * seconds, LONGEST_PAUSE)
