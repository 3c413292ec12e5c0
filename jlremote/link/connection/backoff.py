"""The pauses between attempts to reconnect, and loops that go on after an exception."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from jlremote import errors
from jlremote.errors import JlrError

log = logging.getLogger(__name__)

FIRST_PAUSE, SHORTEST_PAUSE, LONGEST_PAUSE = 0.25, 1.0, 30.0
LOOK_SECONDS = 2.0
# The shortest pause after so many connections in a row that did not last.
FLAPPING_PAUSE, FLAPPING_LOSSES, STEADY_SECONDS = 5.0, 3, 3.0


@dataclass(eq=False)
class Backoff:
    """The pauses of one link; `changed` is `LaptopChanges.changed`, `clock` a monotonic one."""

    changed: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait
    _failures: int = 0
    _losses: int = 0  # of connections in a row that did not last
    _hopeful: bool = True
    _connected_at: float = 0.0
    _hurried: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)

    def connected(self) -> None:
        """Record that an attempt made a connection."""
        self._connected_at = self.clock()

    def lost(self) -> None:
        """Record that the connection died.

        Soon deaths count, or a server that lets us in and then hangs up would get no pause.
        """
        lasts = self.clock() - self._connected_at >= STEADY_SECONDS
        self._failures, self._losses = 0, 0 if lasts else self._losses + 1
        self._hopeful = True

    def failed(self, error: JlrError) -> None:
        """Record that an attempt failed."""
        self._failures, self._losses = self._failures + 1, 0
        # If the server was not reached, another attempt costs it nothing.
        kinds = (errors.NameNotResolved, errors.ConnectionRefused, errors.ConnectionTimedOut)
        unreached = isinstance(error, (*kinds, errors.HungUp))
        self._hopeful = unreached or type(error) is errors.Unreachable

    def hurry(self) -> None:
        """Cut the pause short, but not below a second, because a request waits.

        A connection that flaps is tried every five seconds then. A server that was reached and
        refused us keeps its pause.
        """
        if self._hopeful:
            self._hurried.set()

    def end(self) -> None:
        self._ended.set()
        self._hurried.set()

    def rest(self) -> None:
        """Wait until it is time for the next attempt: the first comes at once.

        Jitter on the doubling pauses keeps laptops that lost the same server from coming back in
        step.
        """
        attempt = self._failures or max(0, self._losses - 1)
        ceiling = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt, 10)) if attempt else 0.0
        pause = ceiling * random.uniform(0.5, 1)  # noqa: S311  # jitter is no secret
        flaps = self._losses >= FLAPPING_LOSSES
        shortest = FLAPPING_PAUSE if flaps else SHORTEST_PAUSE
        pause = max(pause, FLAPPING_PAUSE) if flaps else pause
        self.wait(self._ended, min(pause, shortest))
        left = pause - shortest
        while left > 0 and not self.changed():
            if self.wait(self._hurried, min(left, LOOK_SECONDS)):
                break
            left -= LOOK_SECONDS
        self._hurried.clear()


def begin_loop(
    name: str,
    loop: Callable[[], None],
    *,
    wanted: Callable[[], bool] = lambda: True,
    ended: Callable[[], object] = lambda: None,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Run `loop` in a thread until it returns, then `ended`; after an exception run it again.

    Otherwise the link would lose the thread without a word: a dead connection would stay `up`, and
    a port would accept nothing. The pauses between double while `loop` fails at once.
    """

    def run() -> None:
        seconds = FIRST_PAUSE
        while wanted():
            began = time.monotonic()
            try:
                loop()
                break
            except Exception:
                log.exception("the loop `%s` failed; it goes on", name)
            seconds = FIRST_PAUSE if time.monotonic() - began > LONGEST_PAUSE else seconds
            pause(seconds)
            seconds = min(2 * seconds, LONGEST_PAUSE)
        ended()

    threading.Thread(target=run, name=name, daemon=True).start()
