"""`jlr list` and `jlr status`: the sessions as they are right now, asked and not remembered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from jlremote.errors import Authentication, JlrError, NeedsAuthentication, Unreachable, Usage
from jlremote.jupyter.address import address
from jlremote.jupyter.api import AccessRefused, JupyterApi
from jlremote.jupyter.locate import ContainerGone, JupyterDead, locate
from jlremote.link.client import ForwardStatus, Link, LinkStatus
from jlremote.link.states import State
from jlremote.questions import Question
from jlremote.storage import sessions
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow import mount_listing
from jlremote.workflow.context import Context
from jlremote.workflow.gpus import fault
from jlremote.workflow.links import bring_back, link_of
from jlremote.workflow.report import Kernel, SessionReport

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
    """Return a report of every session that was not stopped, the latest first."""
    for path in sessions.unreadable():
        context.progress.note(f"`{path}` is no record of a session: passed over")
    records = [r for r in sessions.load_all() if r.forwarded and host in (None, r.host)]
    quiet = replace(context, asker=_AsksNobody())
    by_link: dict[tuple[str, str | None], list[SessionRecord]] = defaultdict(list)
    for record in records:
        by_link[record.host, record.ssh_config].append(record)
    with ThreadPoolExecutor(HOSTS_AT_ONCE) as pool:
        answers = pool.map(lambda together: _reports_of(together, quiet), by_link.values())
        found = {(r.host, r.name): r for answer in answers for r in answer}
    return _with_mounts([found[record.host, record.name] for record in records], quiet)


def report(selector: str | None, context: Context) -> SessionReport:
    """Return the report of one session; a person may be asked.

    Raises:
        NotFound: there is no such session.
    """
    record = sessions.choose(selector)
    if not record.forwarded:
        return _with_mounts([_plain(record, "stopped", None)], context)[0]
    [found] = _with_mounts(_reports_of([record], context), context)
    lost = fault(link_of(record, context), record) if found.state == State.UP else None
    return replace(found, detail=f"but {lost.why}; {lost.mend}") if lost else found


def _reports_of(records: Sequence[SessionRecord], context: Context) -> list[SessionReport]:
    """Return the reports of sessions that share a link."""
    link = link_of(records[0], context)
    try:
        status = link.status(connect=True)
    except Authentication as refused:
        return [_plain(record, State.NEEDS_AUTH, refused) for record in records]
    except (Unreachable, Usage) as gone:  # usage: the ssh config may be gone by now
        return [_plain(record, _state_without(link), gone) for record in records]
    return [_report_of(link, status, record) for record in records]


def _with_mounts(found: list[SessionReport], context: Context) -> list[SessionReport]:
    mounted = mount_listing.reports(context, connect=False)
    return [
        replace(r, mounts=tuple(m for m in mounted if (m.host, m.session) == (r.host, r.name)))
        for r in found
    ]


def _state_without(link: Link) -> str:
    """Return the state of a link that has no connection: does it still try?"""
    try:
        return link.status().state
    except JlrError:
        return State.DOWN


def _report_of(link: Link, status: LinkStatus, record: SessionRecord) -> SessionReport:
    try:
        forward = status.forward(record.name) or bring_back(link, record)
    except JlrError as gone:
        return _lost(record, gone)
    if forward.state != State.UP:
        return replace(_plain(record, forward.state, None), detail=forward.detail)
    up = replace(
        _plain(record, State.UP, None), url=address(forward.endpoint.server, forward.local_port)
    )
    try:
        kernels = JupyterApi(forward.local_port, forward.endpoint.server, ANSWER_SECONDS).kernels()
    except AccessRefused:
        return up
    except JlrError as silent:
        return _explained(link, record, forward, silent)
    return replace(up, kernels=tuple(Kernel(k.notebook, k.state, k.last_activity) for k in kernels))


def _explained(
    link: Link, record: SessionRecord, forward: ForwardStatus, silent: JlrError
) -> SessionReport:
    """Return why a server behind a forward that should work does not answer."""
    try:
        locate(link, forward.endpoint)
    except JlrError as gone:
        return _lost(record, gone)
    return _lost(record, silent)


def _lost(record: SessionRecord, error: JlrError) -> SessionReport:
    """Return a report in the state that the error speaks of."""
    states = {ContainerGone: State.CONTAINER_GONE, JupyterDead: State.JUPYTER_DEAD}
    return _plain(record, states.get(type(error), State.DOWN), error)


def _plain(record: SessionRecord, state: str, error: JlrError | None) -> SessionReport:
    return SessionReport(
        name=record.name,
        host=record.host,
        container=record.container,
        runtime=record.runtime,
        state=str(state),
        url=None,
        local_port=record.local_port,
        detail=error.message if error else None,
        image=record.image,
        gpus=record.gpus,
    )
