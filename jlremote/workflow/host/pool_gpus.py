"""`jlr gpus @POOL`: the users of each GPU of a pool, once or continuously."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from jlremote.errors import JlrError, Unreachable
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.workflow.host import pools
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.gpus import ask
from jlremote.workflow.host.links import ASKS_NOTHING, connected_status, link_on
from jlremote.workflow.host.pools import PoolAnswer, ask_each, members

# How long a look waits for the others once a host has answered, and after which time the silence of
# one is told: some drivers take seconds for each answer.
LOOK_SECONDS = 2.0
SILENT_SECONDS = 5.0


def of_pool(pool: str, context: Context) -> list[PoolAnswer[Inventory]]:
    """Return the GPUs of each host of a pool, with their users.

    Raises:
        NotFound: there is no such pool.
    """
    return ask_each(members(pool), lambda host, its: _WatchedHost(host).ask(its), context)


def watch_pool(
    pool: str, seconds: float, context: Context
) -> Iterator[list[PoolAnswer[Inventory]]]:
    """Yield the GPUs of a pool every `seconds` seconds, until the iterator is closed.

    A GPU that a host's driver names no more stays, as a failed one. While `nvidia-smi` hangs or
    fails there, what was last known comes with the reason as its note. The others' GPUs wait for a
    host only until each has answered or failed once.

    Raises:
        NotFound: there is no such pool.
    """
    watched = {host: _WatchedHost(host) for host in members(pool)}
    while True:
        settled = all(host.settled for host in watched.values())  # else some may be logging in
        found = ask_each(
            tuple(watched),
            lambda host, its: watched[host].ask(its),
            context,
            after_first=LOOK_SECONDS if settled else pools.PATIENCE_SECONDS,
        )
        yield [watched[one.host].in_time(one) for one in found]
        threading.Event().wait(seconds)


class _WatchedHost:
    """A host of a pool, with what was last known of its GPUs.

    A look may end before the host has answered. Its thread goes on, and meanwhile the next looks
    neither dial nor ask: each question would leave one more `nvidia-smi` there that hangs.
    """

    def __init__(self, host: str) -> None:
        self.settled = False  # whether it has answered or failed once
        self._host = host
        self._turn = threading.Lock()  # held while the host is dialled or asked
        self._last: Inventory | None = None
        self._failure: CannotAsk | None = None  # of the last answer
        self._asked_at: float | None = None  # when it was asked what it has not answered yet
        self._unreached: JlrError | None = None  # why it was not reached the last time
        self._untold: JlrError | None = None  # the same, until a look has told it

    def ask(self, context: Context) -> Inventory:
        """Return the GPUs of the host, after those of the last time.

        A dial that failed after its look had ended is told now.

        Raises:
            CannotAsk: nothing on the host knows.
            JlrError: the host is not reached.
        """
        if not self._turn.acquire(blocking=False):
            return self._known()
        try:
            untold, self._untold = self._untold, None
            if untold is not None and context.asker is ASKS_NOTHING:
                raise untold
            found = self._asked(context)
        except CannotAsk as failure:
            self._failure = failure
        except JlrError as error:
            self._unreached = self._untold = error
            raise
        else:
            self._failure = None
            self._last = found if self._last is None else found.with_lost(self._last.gpus)
        finally:
            self._asked_at, self.settled = None, True
            self._turn.release()
        return self._known()

    def _asked(self, context: Context) -> Inventory:
        link = link_on(self._host, context)
        connected_status(link)
        self._unreached, self._asked_at = None, time.monotonic()
        return ask(link, context.progress.note)

    def in_time(self, told: PoolAnswer[Inventory]) -> PoolAnswer[Inventory]:
        """Return the answer, or what is known while the host keeps the pool waiting."""
        if told.error is self._untold:
            self._untold = None
        if told.answer is not None or not self._turn.locked():
            return told
        try:
            return PoolAnswer(self._host, self._known())
        except JlrError as why:
            return PoolAnswer(self._host, None, why)

    def _known(self) -> Inventory:
        """Return what was last known, with why there is nothing newer."""
        failure, asked_at = self._failure, self._asked_at
        if asked_at is None and self._turn.locked():
            raise self._unreached or Unreachable(f"`{self._host}` is not connected yet")
        if asked_at is not None and time.monotonic() - asked_at > SILENT_SECONDS:
            failure = failure or CannotAsk(f"`{self._host}` does not answer about its GPUs")
        if self._last is None:
            raise failure or CannotAsk(f"`{self._host}` has not answered yet")
        return self._last if failure is None else self._last.unanswered(failure.message)
