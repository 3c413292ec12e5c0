"""`jlr gpus @POOL`: the users of each GPU of a pool, once or continuously."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.gpus import ask
from jlremote.workflow.host.links import connected, link_on
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
    fails there, what was last known comes with the reason as its note, and the others' GPUs do not
    wait for it.

    Raises:
        NotFound: there is no such pool.
    """
    watched = {host: _WatchedHost(host) for host in members(pool)}
    while True:
        found = ask_each(
            tuple(watched),
            lambda host, its: watched[host].ask(its),
            context,
            after_first=LOOK_SECONDS,
        )
        yield [watched[one.host].in_time(one) for one in found]
        threading.Event().wait(seconds)


class _WatchedHost:
    """A host of a pool, with what was last known of its GPUs."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._last: Inventory | None = None
        self._failure: CannotAsk | None = None  # of the last answer
        self._asked_at: float | None = None  # when it was asked what it has not answered yet

    def ask(self, context: Context) -> Inventory:
        """Return the GPUs of the host, after those of the last time.

        A question that comes before the answer to the last one is not passed on: each would leave
        one more `nvidia-smi` there that hangs.

        Raises:
            CannotAsk: nothing on the host knows.
        """
        if self._asked_at is not None:
            return self._known()
        link = link_on(self._host, context)
        connected(link)
        self._asked_at = time.monotonic()
        try:
            found = ask(link)
        except CannotAsk as failure:
            self._failure = failure
        else:
            self._failure = None
            self._last = found if self._last is None else found.with_lost(self._last.gpus)
        finally:
            self._asked_at = None
        return self._known()

    def in_time(self, told: PoolAnswer[Inventory]) -> PoolAnswer[Inventory]:
        """Return the answer, or what is known while the host keeps the pool waiting."""
        if told.answer is not None or self._last is None or self._asked_at is None:
            return told
        return PoolAnswer(self._host, self._known())

    def _known(self) -> Inventory:
        """Return what was last known, with why there is nothing newer."""
        failure, asked_at = self._failure, self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > SILENT_SECONDS:
            failure = failure or CannotAsk(f"`{self._host}` does not answer about its GPUs")
        if self._last is None:
            raise failure or CannotAsk(f"`{self._host}` has not answered yet")
        return self._last if failure is None else self._last.unanswered(failure.message)
