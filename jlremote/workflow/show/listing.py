"""`jlr list` and `jlr status`: the sessions as they are right now, asked and not remembered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from jlremote.errors import JlrError, NeedsAuthentication
from jlremote.link.client.dial import NoLink
from jlremote.link.client.link import Link
from jlremote.link.wire.states import State
from jlremote.link.wire.status import LinkStatus
from jlremote.storage import sessions
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.gpus import fault
from jlremote.workflow.host.link_state import ASKS_NOTHING, connected
from jlremote.workflow.host.links import link_of
from jlremote.workflow.mounts import known_mounts
from jlremote.workflow.selection import session_selection
from jlremote.workflow.session.report import SessionReport, of_present, of_record
from jlremote.workflow.show import containers, session_reports

HOSTS_AT_ONCE = 16


def reports(context: Context, host: str | None = None) -> list[SessionReport]:
    """Return a report of every session that was not stopped, the latest first.

    With `host` those of that host, also such as only the host knows; a person may be asked then.
    """
    for path in sessions.unreadable():
        context.progress.note(f"`{path}` is no record of a session: passed over")
    if host is not None:
        return on_host(context, host)
    records = [record for record in sessions.load_all() if record.forwarded]
    quiet = replace(context, asker=ASKS_NOTHING)
    by_link: dict[tuple[str, str | None], list[SessionRecord]] = defaultdict(list)
    for record in records:
        by_link[record.host, record.ssh_config].append(record)
    with ThreadPoolExecutor(HOSTS_AT_ONCE) as pool:
        answers = pool.map(
            lambda them: session_reports.of(them, quiet, _undisturbed), by_link.values()
        )
        found = {(r.host, r.name): r for answer in answers for r in answer}
    listed = [found[record.host, record.name] for record in records]
    _say_who_asks(listed, context)
    return with_mounts(listed, quiet)


def on_host(context: Context, host: str) -> list[SessionReport]:
    """Return a report of every session of a host: those of this laptop first, then all others.

    Raises:
        JlrError: the host cannot be asked, and nothing of it is recorded here.
    """
    records = [r for r in sessions.load_all() if r.forwarded and r.host == host]
    by_link: dict[str | None, list[SessionRecord]] = defaultdict(list)
    for record in records:
        by_link[record.ssh_config].append(record)
    listed = [r for them in by_link.values() for r in session_reports.of(them, context, connected)]
    try:
        found = containers.presence(host, context)
    except JlrError as unreached:
        if not records:
            raise
        context.progress.note(f"`{host}` cannot be asked what else there is: {unreached.message}")
        return with_mounts(listed, context)
    if found.engine_failure:
        context.progress.note(f"its containers are unknown: {found.engine_failure.message}")
    here = {record.name for record in records}
    others = [of_present(host, one) for one in found.sessions if one.name not in here]
    return with_mounts(listed, context) + others


def report(selector: str | None, context: Context) -> SessionReport:
    """Return the report of one session; a person may be asked.

    Raises:
        NotFound: there is no such session.
    """
    record = session_selection.chosen(selector, context)
    if not record.forwarded:
        return with_mounts([of_record(record, "stopped")], context)[0]
    [found] = with_mounts(session_reports.of([record], context, connected), context)
    lost = fault(link_of(record, context), record) if found.state == State.UP else None
    if lost is None:
        return found
    also = (f"but {lost.why}; {lost.mend}", found.detail)
    return replace(found, detail="; ".join(filter(None, also)))


def _say_who_asks(listed: Sequence[SessionReport], context: Context) -> None:
    """Tell how to answer the hosts that wait for a person."""
    waiting = {r.host: r.name for r in reversed(listed) if r.state == State.NEEDS_AUTH}
    for host, name in waiting.items():
        context.progress.note(f"`{host}` waits for you: `jlr status {name}` in a terminal asks")


def _undisturbed(link: Link) -> LinkStatus:
    """Return the status of a link, connected unless it waits for a person.

    To try again without one would only be one more failed login in the host's log.
    """
    with suppress(NoLink):
        status = link.status()
        if status.state == State.NEEDS_AUTH:
            raise NeedsAuthentication(status.detail or "the host asks for something")
    return connected(link)


def with_mounts(found: list[SessionReport], context: Context) -> list[SessionReport]:
    """Return the reports with what of the sessions is mounted here."""
    mounted = known_mounts.reports(context, connect=False)
    return [
        replace(r, mounts=tuple(m for m in mounted if (m.host, m.session) == (r.host, r.name)))
        for r in found
    ]
