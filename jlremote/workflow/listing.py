"""`jlr list` and `jlr status`: the sessions as they are right now, asked and not remembered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from jlremote.errors import JlrError, NeedsAuthentication
from jlremote.jupyter.address import address
from jlremote.jupyter.api import Access, AccessRefused, JupyterApi
from jlremote.jupyter.locate import ContainerGone, IdleStopped, JupyterDead, JupyterStopped
from jlremote.jupyter.presence import Present
from jlremote.link.client import Link
from jlremote.link.dial import NoLink
from jlremote.link.states import State
from jlremote.link.status import ForwardStatus, LinkStatus
from jlremote.questions import Question
from jlremote.storage import sessions
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow import adoption, further_ports, mount_listing, presence
from jlremote.workflow.answering import of_access
from jlremote.workflow.context import Context
from jlremote.workflow.gpus import fault
from jlremote.workflow.links import link_of
from jlremote.workflow.report import Kernel, SessionReport, utc
from jlremote.workflow.restoring import bring_back
from jlremote.workflow.unreached import Unreached, connected, status_of

HOSTS_AT_ONCE = 16
ANSWER_SECONDS = 5.0


class _AsksNobody:
    """A list shows that a host asks for something; it does not ask in its name."""

    def ask(self, question: Question) -> str:
        raise NeedsAuthentication(
            "the host asks for a password, a code or a decision",
            hint="`jlr status SESSION` in a terminal asks you",
        )


def reports(context: Context, host: str | None = None) -> list[SessionReport]:
    """Return a report of every session that was not stopped, the latest first.

    With `host` those of that host, also such as only the host knows; a person may be asked then.
    """
    for path in sessions.unreadable():
        context.progress.note(f"`{path}` is no record of a session: passed over")
    if host is not None:
        return on_host(context, host)
    records = [record for record in sessions.load_all() if record.forwarded]
    quiet = replace(context, asker=_AsksNobody())
    by_link: dict[tuple[str, str | None], list[SessionRecord]] = defaultdict(list)
    for record in records:
        by_link[record.host, record.ssh_config].append(record)
    with ThreadPoolExecutor(HOSTS_AT_ONCE) as pool:
        answers = pool.map(lambda them: _reports_of(them, quiet, _undisturbed), by_link.values())
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
    listed = [r for them in by_link.values() for r in _reports_of(them, context, connected)]
    try:
        found = presence.presence(host, context)
    except JlrError as unreached:
        if not records:
            raise
        context.progress.note(f"`{host}` cannot be asked what else there is: {unreached.message}")
        return with_mounts(listed, context)
    if found.engine_failure:
        context.progress.note(f"its containers are unknown: {found.engine_failure.message}")
    here = {record.name for record in records}
    others = [_elsewhere(host, one) for one in found.sessions if one.name not in here]
    return with_mounts(listed, context) + others


def _elsewhere(host: str, there: Present) -> SessionReport:
    """Return the report of a session that is not forwarded here."""
    return SessionReport(
        name=there.name,
        host=host,
        container=None if there.runtime == "none" else there.name,
        runtime=there.runtime,
        state=str(State.RUNNING if there.jupyter else State.STOPPED),
        url=None,
        local_port=None,
        image=there.image,
        gpus=there.gpus,
    )


def report(selector: str | None, context: Context) -> SessionReport:
    """Return the report of one session; a person may be asked.

    Raises:
        NotFound: there is no such session.
    """
    record = adoption.chosen(selector, context)
    if not record.forwarded:
        return with_mounts([plain(record, "stopped")], context)[0]
    [found] = with_mounts(_reports_of([record], context, connected), context)
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


def _reports_of(
    records: Sequence[SessionRecord], context: Context, ask: Callable[[Link], LinkStatus]
) -> list[SessionReport]:
    """Return the reports of sessions that share a link."""
    link = link_of(records[0], context)
    status = status_of(link, ask)
    if isinstance(status, Unreached):
        return [without_host(record, status) for record in records]
    return [_with_ports(_report_of(link, status, record), record, link) for record in records]


def without_host(record: SessionRecord, why: Unreached) -> SessionReport:
    """Return the report of a session whose host is not reached."""
    report = plain(record, why.state, why.since, why.detail)
    return replace(report, ports=further_ports.reports(record, why))


def _with_ports(found: SessionReport, record: SessionRecord, link: Link) -> SessionReport:
    if not record.ports:
        return found
    told = link.status().ports_of(record.name)  # now: the session may just have been brought back
    return replace(found, ports=further_ports.reports(record, told))


def with_mounts(found: list[SessionReport], context: Context) -> list[SessionReport]:
    """Return the reports with what of the sessions is mounted here."""
    mounted = mount_listing.reports(context, connect=False)
    return [
        replace(r, mounts=tuple(m for m in mounted if (m.host, m.session) == (r.host, r.name)))
        for r in found
    ]


def _report_of(link: Link, status: LinkStatus, record: SessionRecord) -> SessionReport:
    try:
        forward = status.forward(record.name) or bring_back(link, record)
    except JlrError as gone:
        return _lost(record, gone)
    up = told(record, forward)
    if forward.state != State.UP:
        return up
    try:
        kernels = JupyterApi(forward.local_port, forward.endpoint.server, ANSWER_SECONDS).kernels()
    except AccessRefused:
        return with_access(up, Access.PASSWORD)
    except JlrError as silent:
        return _explained(link, record, silent)
    access = Access.TOKEN if forward.endpoint.server.token else Access.OPEN
    told_by_it = tuple(Kernel(k.notebook, k.state, k.last_activity) for k in kernels)
    return with_access(replace(up, kernels=told_by_it), access)


def with_access(report: SessionReport, access: str | None) -> SessionReport:
    """Return the report of a session with what its server asks for, if it is up."""
    if access is None or report.state != State.UP:
        return report
    return replace(report, access=str(access), detail=of_access(access, report.host))


def told(record: SessionRecord, forward: ForwardStatus) -> SessionReport:
    """Return what the link tells of a session; nobody else is asked."""
    report = plain(record, forward.state, utc(forward.since), forward.detail)
    if forward.state != State.UP:
        return report
    server = forward.endpoint.server
    url = address(server, forward.local_port)
    return replace(report, url=url, idle_stop=server.idle_stop or None)


def _explained(link: Link, record: SessionRecord, silent: JlrError) -> SessionReport:
    """Return why a server behind a forward that should work does not answer."""
    try:
        forward = link.check(record.name)
    except JlrError as gone:
        return _lost(record, gone)
    if forward is None or forward.state == State.UP:
        return _lost(record, silent)
    return told(record, forward)


def _lost(record: SessionRecord, error: JlrError) -> SessionReport:
    """Return a report in the state that the error speaks of."""
    states: dict[type[JlrError], State] = {
        ContainerGone: State.CONTAINER_GONE,
        JupyterDead: State.JUPYTER_DEAD,
        JupyterStopped: State.STOPPED,
        IdleStopped: State.IDLE_STOPPED,
    }
    return plain(record, states.get(type(error), State.DOWN), None, error.message)


def plain(
    record: SessionRecord, state: str, since: str | None = None, detail: str | None = None
) -> SessionReport:
    """Return the report of a session of which nothing is known but its record and its state."""
    return SessionReport(
        name=record.name,
        host=record.host,
        container=record.container,
        runtime=record.runtime,
        state=str(state),
        url=None,
        local_port=record.local_port,
        since=since,
        detail=detail,
        image=record.image,
        gpus=record.gpus,
    )
