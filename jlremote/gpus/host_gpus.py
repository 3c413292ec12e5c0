"""`jlr gpus`: the users of each GPU of a host or pool, once or continuously; the host of a pool."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count

from jlremote.errors import Busy, JlrError, NeedsAuthentication, Unreachable, Usage
from jlremote.gpus import snapshot, taking
from jlremote.gpus.assigned import RunningContainer
from jlremote.gpus.choice import choose, parse_request, refuse_to_overtake
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk, NvidiaSmiMissing
from jlremote.gpus.taking import ASK_SECONDS
from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_if_any, startup_files, used_on
from jlremote.hosts.links import (
    ASKS_NOTHING,
    POOL_SECONDS,
    PoolAnswer,
    ask_each,
    connected_status,
    link_on,
    note_silent,
)
from jlremote.jupyter.presence import look
from jlremote.laptop import sessions
from jlremote.laptop.settings import settings
from jlremote.laptop.settings.options import Value
from jlremote.link.client.link import Link
from jlremote.place.clusters.scheduler import ClusterGpus, SchedulerSilent
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.clusters.slurm_lists import read_gpus
from jlremote.place.host.contract import FIELD, RECORD, Host, run_script
from jlremote.place.runtimes.engine.kinds import Argv
from jlremote.place.runtimes.runtime import TYPED_LABEL

NOT_FOUND = 127  # the status of a shell that finds no such command
_CONTAINERS = f"containers{FIELD}"  # how the record of what engines and Slurm have given begins
_LOOKS = 10
CLUSTER_SECONDS = 60.0  # the least pause between questions to a scheduler, which forbids loops
# Some drivers take seconds for each answer: a silence of so long is told.
SILENT_SECONDS = 5.0
_Answer = PoolAnswer[Inventory]


def inventory(host: str, context: Context) -> Inventory | ClusterGpus:
    """Return the GPUs of a host with their users, or those of the cluster of a login node.

    Raise `CannotAsk` if nothing there knows, `SchedulerSilent` if its scheduler does not answer.
    """
    link = link_on(host, context)
    try:
        return ask(link, context.progress.note)
    except CannotAsk as failure:
        return _of_cluster(link, failure)


def _of_cluster(link: Host, failure: CannotAsk) -> ClusterGpus:
    told = run_script(link, SLURM.gpus(), timeout=ASK_SECONDS)
    if told.status == NOT_FOUND:
        raise failure
    return read_gpus(told.stdout)


def watch(host: str, seconds: float, context: Context) -> Iterator[Inventory | ClusterGpus]:
    """Yield the GPUs of a host every `seconds` seconds, until the iterator is closed.

    What was last known stays while `nvidia-smi` hangs or fails, with the reason as its note; a GPU
    that it names no more is a failed one. A scheduler is asked once a minute. Raise `CannotAsk` if
    nothing on the host knows, `SchedulerSilent` if the scheduler does not answer to the first
    question.
    """
    link = link_on(host, context)
    try:
        yield from own_gpus(link, seconds)
    except CannotAsk as failure:  # to the first question
        yield _of_cluster(link, failure)
        while True:
            threading.Event().wait(max(seconds, CLUSTER_SECONDS))
            try:
                yield _of_cluster(link, failure)
            except SchedulerSilent as silent:
                context.progress.note(silent.message)


def own_gpus(link: Link, seconds: float) -> Iterator[Inventory]:
    """Yield the host's own GPUs every `seconds` seconds.

    What was last known of engines and Slurm counts for ten looks, as they answer slowly. Raise
    `CannotAsk` if nothing on the host knows.
    """
    last, given = ask(link), ""
    yield last
    for turn in count():
        threading.Event().wait(seconds)
        engines = None if given and turn % _LOOKS else engines_asked(link.name)
        script = snapshot.snapshot_script(engines)
        printed = run_script(link, script, timeout=ASK_SECONDS).stdout
        if engines is not None:
            found = (each for each in printed.split(RECORD) if each.startswith(_CONTAINERS))
            given = next(found, given)
        try:
            last = snapshot.read(f"{printed}{given}{RECORD}", link.name).with_lost(last.gpus)
        except CannotAsk as silent:
            last = last.unanswered(silent.message)
        yield last


def ask(
    host: Link, note: Callable[[str], object] | None = None, within: RunningContainer | None = None
) -> Inventory:
    """Return the GPUs of a host with their users, in one round trip; see `taking.ask`."""
    asked = partial(taking.ask, host, engines_asked(host.name), note, within)
    try:
        return asked()
    except NvidiaSmiMissing as missing:
        login, finds_more = host.login_shell()
        if not finds_more and login.trouble:
            raise CannotAsk(
                f"cannot tell whether `{host.name}` has GPUs: there is no `nvidia-smi` for a "
                f"command by ssh, and {login.trouble}",
                hint=startup_files(host.name),
            ) from missing
        if not finds_more:
            why = f"{missing.message}: {login.looked()}"
            raise NvidiaSmiMissing(why, hint=missing.hint) from missing
    return asked()


def engines_asked(host: str) -> tuple[Argv, ...]:
    """Return the engines to ask for the containers of a host.

    An engine behind `sudo` is asked only where this laptop has used it: others would be reported to
    the administrator for trying. Its password is not asked for, though the link may know it.
    """
    behind_sudo = (engine.if_known()() for engine in used_on(host) if engine.behind_sudo)
    return tuple(dict.fromkeys((*snapshot.EVERYBODYS, *behind_sudo)))


def of_pool(pool: str, context: Context) -> list[_Answer]:
    """Return the GPUs of each host of a pool with their users (`NotFound`: no such pool)."""
    hosts = settings.load().pool(pool)
    return ask_each(hosts, lambda host, its: ask(_connected(host, its), its.progress.note), context)


def watch_pool(pool: str, seconds: float, context: Context) -> Iterator[list[_Answer]]:
    """Yield the GPUs of a pool every `seconds` seconds (`NotFound`: there is no such pool).

    A thread watches each host, so none waits for one that hangs.
    """
    hosts = [_WatchedHost(host) for host in settings.load().pool(pool)]
    quiet = replace(context, asker=ASKS_NOTHING)
    for host in hosts:
        threading.Thread(target=host.watch, args=(seconds, quiet), daemon=True).start()
    until = time.monotonic() + POOL_SECONDS
    while True:
        for host in hosts:
            host.settled.wait(max(0.0, until - time.monotonic()))
            if isinstance(host.last.error, NeedsAuthentication):
                with suppress(JlrError):  # its thread connects by the same link
                    _connected(host.name, context)
        yield [host.answer(seconds) for host in hosts]
        time.sleep(seconds)


class _WatchedHost:
    """A host of a pool, with what was last known of its GPUs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.last = _Answer(name, None, Unreachable(f"`{name}` is not connected yet"))
        self.settled = threading.Event()  # set once it has answered or failed
        self._answered = time.monotonic()

    def watch(self, seconds: float, context: Context) -> None:
        """Watch the host, without an end."""
        while True:
            try:
                for found in own_gpus(_connected(self.name, context), seconds):
                    self._note(_Answer(self.name, found))
            except JlrError as error:
                self._note(_Answer(self.name, None, error))
            time.sleep(seconds)

    def answer(self, seconds: float) -> _Answer:
        """Return what was last known, with a note if more than `seconds` and some have passed."""
        late = time.monotonic() - self._answered > seconds + SILENT_SECONDS
        if self.last.answer is None or not late:
            return self.last
        silent = self.last.answer.unanswered(f"`{self.name}` does not answer about its GPUs")
        return _Answer(self.name, silent)

    def _note(self, answer: _Answer) -> None:
        self.last, self._answered = answer, time.monotonic()
        self.settled.set()


def _connected(host: str, context: Context) -> Link:
    link = link_on(host, context)
    connected_status(link)
    return link


# What a host has for a session: its GPUs, and whether it has a container of the name asked for.
_Room = tuple["Inventory | CannotAsk", bool]


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
    Raise `NotFound` if there is no such pool, `Usage` if several hosts have the container, `Busy`
    if no host can give the GPUs, and `JlrError` if none answers.
    """
    hosts = settings.load().pool(pool)
    known = [r for r in sessions.load_all() if r.host in hosts]
    if or_latest and container is None and known:
        return known[0].host
    named = {r.host for r in known if container in (r.name, r.typed)}
    if container is not None and len(named) == 1:
        return named.pop()
    answers = ask_each(hosts, lambda host, its: _room(host, container, its), context)
    note_silent(answers, context)
    having = [one.host for one in answers if one.answer and one.answer[1]]
    if len(having) > 1:
        what = f"{' and '.join(f'`{host}`' for host in having)} each have a container `{container}`"
        hint = f"name the host instead of `{pool}`"
        raise Usage(what, hint=hint)
    if having:
        return having[0]
    return _roomiest(pool, answers, flags, context, waits=waits)


def _room(host: str, container: str | None, context: Context) -> _Room:
    link = _connected(host, context)
    try:
        gpus: Inventory | CannotAsk = ask(link)
    except CannotAsk as reason:
        gpus = reason
    if container is None:
        return gpus, False
    present = look(link, engine_if_any(link))
    names = {found.name for found in present.sessions}
    for found in (each.container for each in present.containers):
        names |= {found.name, found.labels.get(TYPED_LABEL, "") if found.is_session else ""}
    return gpus, container in names


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
        try:
            free[one.host] = _free_memory(one.host, there, known.chosen(one.host, flags))
        except JlrError as error:
            refused.append(error.message)
            if isinstance(error, Busy) and isinstance(there, Inventory):
                queues[one.host] = sum(start.count for start in there.queue)
    if waits and queues and not free:
        return min(queues, key=queues.__getitem__)
    if not free:
        hint = f"`jlr gpus {pool} --watch` shows when some become free"
        raise Busy(f"no host of `{pool}` can give the GPUs: {'; '.join(refused)}", hint=hint)
    best = max(free, key=lambda host: free[host])  # of equal ones the first
    why = "has the most free GPU memory" if free[best] else "is the first that answers"
    context.progress.note(f"`{best}` of `{pool}` {why}")
    return best


def _free_memory(host: str, inventory: Inventory | CannotAsk, options: Mapping[str, Value]) -> int:
    wanted = parse_request(str(options.get("gpus") or "none"))
    if isinstance(inventory, CannotAsk):
        if wanted.kind != "none":
            raise inventory
        return 0
    if wanted.chosen:
        chosen = choose(wanted, inventory, host, share=bool(options.get("share-gpus")))
        refuse_to_overtake(host, len(chosen.uuids), inventory, None)
    return sum(device.memory_free for device in inventory.devices if not device.in_use)
