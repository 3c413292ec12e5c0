"""The host of a pool on which a session or job belongs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jlremote.errors import Busy, JlrError, Usage
from jlremote.gpus.choice import choose, refuse_to_overtake
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.request import parse_request
from jlremote.gpus.snapshot import CannotAsk
from jlremote.jupyter.presence import Presence, look
from jlremote.runtimes.contract import TYPED_LABEL
from jlremote.storage import sessions
from jlremote.storage.settings import settings
from jlremote.storage.settings.options import Value
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.engines import engine_if_any
from jlremote.workflow.host.gpus import ask
from jlremote.workflow.host.links import connected_status, link_on
from jlremote.workflow.host.pools import PoolAnswer, ask_each, members, note_silent

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
