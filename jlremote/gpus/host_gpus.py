"""`jlr gpus HOST`: the users of each GPU of a host, once or continuously."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from jlremote.gpus import snapshot, taking
from jlremote.gpus.assigned import RunningContainer
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk, NvidiaSmiMissing
from jlremote.gpus.taking import ASK_SECONDS
from jlremote.hosts.context import Context
from jlremote.hosts.engines import startup_files, used_on
from jlremote.hosts.links import link_on
from jlremote.link.client.link import Link
from jlremote.place.clusters.scheduler import ClusterGpus, SchedulerSilent
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.clusters.slurm_lists import read_gpus
from jlremote.place.host.contract import FIELD, RECORD, Host, run_script
from jlremote.place.runtimes.engine.kinds import Argv

NOT_FOUND = 127  # the status of a shell that finds no such command
_CONTAINERS = f"containers{FIELD}"  # how the record of what engines and Slurm have given begins
_LOOKS = 10
CLUSTER_SECONDS = 60.0  # the least pause between questions to a scheduler, which forbids loops


def inventory(host: str, context: Context) -> Inventory | ClusterGpus:
    """Return the GPUs of a host with their users, or those of the cluster of a login node.

    Raise `CannotAsk` if nothing on the host knows, `SchedulerSilent` if the scheduler does not
    answer.
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
    look = partial(taking.ask, host, engines_asked(host.name), note, within)
    try:
        return look()
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
    return look()


def engines_asked(host: str) -> tuple[Argv, ...]:
    """Return the engines to ask for the containers of a host.

    An engine behind `sudo` is asked only where this laptop has used it: others would be reported to
    the administrator for trying. Its password is not asked for, though the link may know it.
    """
    behind_sudo = (engine.if_known()() for engine in used_on(host) if engine.behind_sudo)
    return tuple(dict.fromkeys((*snapshot.EVERYBODYS, *behind_sudo)))
