"""`jlr mount` alone: the mounts and their states. No mount is looked into."""

from __future__ import annotations

import shlex
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from jlremote.errors import JlrError
from jlremote.link.wire.states import State
from jlremote.link.wire.status import LinkStatus
from jlremote.mounts.system import System, this_system
from jlremote.storage import mounts
from jlremote.storage.mounts import MountRecord
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.link_state import ASKS_NOTHING
from jlremote.workflow.host.links import link_of
from jlremote.workflow.mounts import known_mounts
from jlremote.workflow.mounts.known_mounts import MountReport

HOSTS_AT_ONCE = 16


def reports(context: Context, *, connect: bool = True) -> list[MountReport]:
    """Return a report of every mount.

    Args:
        context: the laptop's side.
        connect: whether a link that is gone is started again, which brings its mounts back.
    """
    records = mounts.load_all()
    if not records:
        return []
    quiet = replace(context, asker=ASKS_NOTHING)
    ways = {(record.host, record.ssh_config): record for record in records}
    with ThreadPoolExecutor(HOSTS_AT_ONCE) as pool:
        statuses = pool.map(lambda record: _status(record, quiet, connect=connect), ways.values())
        by_way = dict(zip(ways, statuses, strict=True))
    system = this_system()
    return [_report(r, system, by_way[r.host, r.ssh_config]) for r in records]


def _status(record: MountRecord, context: Context, *, connect: bool) -> LinkStatus | None:
    """Return the link's status, `None` if there is no link.

    One that runs tries by itself, and is not waited for.
    """
    link = link_of(record, context)
    with suppress(JlrError):
        return link.status()
    if connect:
        with suppress(JlrError):
            return link.status(connect=True)
    return None


def _report(record: MountRecord, system: System, link: LinkStatus | None) -> MountReport:
    state, detail = _state(record, system, link)
    return known_mounts.report(record, state, detail)


def _state(record: MountRecord, system: System, link: LinkStatus | None) -> tuple[str, str | None]:
    again = f"`jlr mount {shlex.quote(str(record.local))}` mounts it again"
    if not known_mounts.is_mounted(record, system):
        return "unmounted", f"somebody else unmounted it, or the machine started anew; {again}"
    if not known_mounts.is_served(record):
        return "dead", f"its sshfs has ended; {again}"
    if link is None:
        return State.DOWN, f"there is no link to {record.host}"
    if link.state != State.UP:
        return link.state, link.detail
    held = link.mount(record.name)
    if held is None:
        return State.DOWN, f"the link does not know it; {again}"
    if held.failure is not None and not held.connected:
        return State.DOWN, f"the host refuses it: {held.failure}"
    return State.UP, None
