"""`jlr gpus`: the users of each GPU of a host, once or continuously."""

from __future__ import annotations

from collections.abc import Iterator

from jlremote.gpus import snapshot_script
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk, read
from jlremote.host.contract import Host, run_script
from jlremote.host.records import GROUP
from jlremote.runtimes.engine.engine import Argv
from jlremote.schedulers.contract import ClusterGpus
from jlremote.schedulers.slurm.commands import SLURM
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.engines import used_on
from jlremote.workflow.host.links import link_on

# A driver that sleeps between questions takes seconds for each GPU.
ASK_SECONDS = 45.0
NOT_FOUND = 127  # the status of a shell that finds no such command


def inventory(host: str, context: Context) -> Inventory | ClusterGpus:
    """Return the GPUs of a host with their users; of a login node without any, its cluster's.

    Raises:
        CannotAsk: nothing on the host knows.
        SchedulerSilent: the scheduler does not answer.
    """
    link = link_on(host, context)
    try:
        return ask(link)
    except CannotAsk:
        told = run_script(link, SLURM.gpus(), timeout=ASK_SECONDS)
        if told.status == NOT_FOUND:
            raise
        return SLURM.read_gpus(told.stdout)


def watch(host: str, seconds: float, context: Context) -> Iterator[Inventory]:
    """Yield the GPUs of a host every `seconds` seconds, until the iterator is closed.

    A GPU that the driver names no more stays, as a failed one. While `nvidia-smi` hangs or fails,
    what was last known comes with the reason as its note.

    Raises:
        CannotAsk: nothing on the host knows.
    """
    last: Inventory | None = None
    asked = snapshot_script.snapshots(seconds, engines_asked(host))
    with link_on(host, context).stream(asked) as output:
        text = ""
        for piece in output:
            *whole, text = (text + piece).split(GROUP)
            for snapshot in whole:
                last = _next(last, snapshot, host)
                yield last
    raise CannotAsk(f"`{host}` stopped reporting its GPUs")


def _next(last: Inventory | None, snapshot: str, host: str) -> Inventory:
    """Return the GPUs of a snapshot, after those of the last one."""
    try:
        found = read(snapshot, host)
    except CannotAsk as silent:
        if last is None:
            raise
        return last.unanswered(silent.message)
    return found if last is None else found.with_lost(last.gpus)


def ask(host: Host) -> Inventory:
    """Return the GPUs of a host with their users, in one round trip."""
    asked = snapshot_script.snapshot(engines_asked(host.name))
    return read(run_script(host, asked, timeout=ASK_SECONDS).stdout, host.name)


def engines_asked(host: str) -> tuple[Argv, ...]:
    """Return the engines to ask for the containers of a host.

    An engine behind `sudo` is asked only where this laptop has used it: others would be reported to
    the administrator for trying. Its password is not asked for, though the link may know it.
    """
    behind_sudo = (engine.if_known()() for engine in used_on(host) if engine.behind_sudo)
    return tuple(dict.fromkeys((*snapshot_script.EVERYBODYS, *behind_sudo)))
