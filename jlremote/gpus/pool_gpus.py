"""`jlr gpus @POOL`: the users of each GPU of a pool, once or continuously."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from jlremote.errors import Busy, JlrError, Unreachable, Usage
from jlremote.gpus.choice import choose, parse_request, refuse_to_overtake
from jlremote.gpus.host_gpus import ask
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.hosts import pools
from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_if_any
from jlremote.hosts.links import ASKS_NOTHING, connected_status, link_on
from jlremote.hosts.pools import PoolAnswer, ask_each, members, note_silent
from jlremote.jupyter.presence import Presence, look
from jlremote.laptop import sessions
from jlremote.laptop.settings import settings
from jlremote.laptop.settings.options import Value
from jlremote.place.runtimes.runtime import TYPED_LABEL

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


# What a host has for a session: its GPUs, and its containers and sessions, `None` if no name was
# asked for.
_Room = tuple["Inventory | CannotAsk", "Presence | None"]


def host_of_pool(
    pool: str,
    container: str | None,
    flags: Mapping[str, Value | None],
    context: Context,
    *,
    or_latest: bool = False,
    waits: bool = False,
) -> str:
    """Return the host that has the container, else the one with the most free GPU memory.

    `flags` are `gpus` and `share-gpus` of the command line; a host that cannot give the GPUs is not
    taken. With `or_latest`, no `container` means the latest session of the pool that is known here.
    With `waits`, a host where the GPUs are only in use is taken too: the one with the least queue.

    Raises:
        Busy: no host of the pool can give the GPUs.
        NotFound: there is no such pool.
        Usage: several hosts have the container.
        JlrError: no host of the pool answers.
    """
    hosts = members(pool)
    known = [r for r in sessions.load_all() if r.host in hosts]
    if or_latest and container is None and known:
        return known[0].host
    named = {r.host for r in known if container in (r.name, r.typed)}
    if container is not None and len(named) == 1:
        return named.pop()
    answers = ask_each(hosts, lambda host, its: _room(host, container, its), context)
    note_silent(answers, context)
    having = [one.host for one in answers if _has(one, container)]
    if len(having) > 1:
        raise Usage(
            f"{' and '.join(f'`{host}`' for host in having)} each have a container `{container}`",
            hint=f"name the host instead of `{pool}`",
        )
    if having:
        return having[0]
    return _roomiest(pool, answers, flags, context, waits=waits)


def _room(host: str, container: str | None, context: Context) -> _Room:
    link = link_on(host, context)
    connected_status(link)
    gpus: Inventory | CannotAsk
    try:
        gpus = ask(link)
    except CannotAsk as reason:
        gpus = reason
    return gpus, None if container is None else look(link, engine_if_any(link))


def _has(one: PoolAnswer[_Room], container: str | None) -> bool:
    _, present = one.answer or (None, None)
    if present is None:
        return False
    containers = [found.container for found in present.containers]
    typed = {found.labels.get(TYPED_LABEL) for found in containers if found.is_session}
    names = {found.name for found in containers} | {found.name for found in present.sessions}
    return container in names | typed


def _roomiest(
    pool: str,
    answers: Sequence[PoolAnswer[_Room]],
    flags: Mapping[str, Value | None],
    context: Context,
    *,
    waits: bool,
) -> str:
    known = settings.load()
    refused: list[str] = []
    free: dict[str, int] = {}
    queues: dict[str, int] = {}  # how many GPUs are waited for, where these can be waited for
    for one in answers:
        if one.answer is None:
            continue
        there, _ = one.answer
        chosen = known.chosen(one.host, flags)
        gpus, share = chosen.get("gpus"), bool(chosen.get("share-gpus"))
        try:
            free[one.host] = _free_memory(one.host, there, gpus, share=share)
        except JlrError as error:
            refused.append(error.message)
            if isinstance(error, Busy) and isinstance(there, Inventory):
                queues[one.host] = sum(start.count for start in there.queue)
    if waits and queues and not free:
        return min(queues, key=lambda host: queues[host])
    if not free:
        raise Busy(
            f"no host of `{pool}` can give the GPUs: {'; '.join(refused)}",
            hint=f"`jlr gpus {pool} --watch` shows when some become free",
        )
    best = max(free, key=lambda host: free[host])  # of equal ones the first
    why = "has the most free GPU memory" if free[best] else "is the first that answers"
    context.progress.note(f"`{best}` of `{pool}` {why}")
    return best


def _free_memory(
    host: str, inventory: Inventory | CannotAsk, gpus: Value | None, *, share: bool
) -> int:
    """Return the MiB of GPU memory that are free on a host.

    Raises:
        JlrError: it cannot give the GPUs that are asked for.
    """
    wanted = None if gpus in (None, "none") else parse_request(str(gpus))
    if isinstance(inventory, CannotAsk):
        if wanted is not None:
            raise inventory
        return 0
    if wanted is not None and wanted.chosen:
        chosen = choose(wanted, inventory, host, share=share)
        refuse_to_overtake(host, len(chosen.uuids), inventory, None)
    return sum(device.memory_free for device in inventory.devices if not device.in_use)
