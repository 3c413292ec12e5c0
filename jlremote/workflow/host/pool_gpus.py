"""`jlr gpus @POOL`: the users of each GPU of a pool, once or continuously."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.gpus import ask
from jlremote.workflow.host.links import connected, link_on
from jlremote.workflow.host.pools import PoolAnswer, ask_each, members


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
    fails there, what was last known comes with the reason as its note.

    Raises:
        NotFound: there is no such pool.
    """
    watched = {host: _WatchedHost(host) for host in members(pool)}
    while True:
        found = ask_each(tuple(watched), lambda host, its: watched[host].ask(its), context)
        yield [watched[one.host].in_time(one) for one in found]
        threading.Event().wait(seconds)


class _WatchedHost:
    """A host of a pool, with what was last known of its GPUs."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._last: Inventory | None = None
        self._is_asked = False  # whether it has not answered to a question about its GPUs yet

    def ask(self, context: Context) -> Inventory:
        """Return the GPUs of the host, after those of the last time.

        A question that comes before the answer to the last one is not passed on: each would leave
        one more `nvidia-smi` there that hangs.

        Raises:
            CannotAsk: nothing on the host knows.
        """
        if self._is_asked:
            return self._unanswered(self._silence)
        link = link_on(self._host, context)
        connected(link)
        self._is_asked = True
        try:
            found = ask(link)
        except CannotAsk as failure:
            return self._unanswered(failure)
        finally:
            self._is_asked = False
        self._last = found if self._last is None else found.with_lost(self._last.gpus)
        return self._last

    def in_time(self, told: PoolAnswer[Inventory]) -> PoolAnswer[Inventory]:
        """Return the answer, or what was last known while the host keeps the pool waiting."""
        if told.answer is not None or self._last is None or not self._is_asked:
            return told
        return PoolAnswer(self._host, self._unanswered(self._silence))

    @property
    def _silence(self) -> CannotAsk:
        return CannotAsk(f"`{self._host}` does not answer about its GPUs")

    def _unanswered(self, why: CannotAsk) -> Inventory:
        if self._last is None:
            raise why
        return self._last.unanswered(why.message)
