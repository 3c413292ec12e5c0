"""`jlr restart` and `start --renew`: a session's Jupyter, or its job, again with what it had."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from jlremote.errors import JlrError, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.links import link_of
from jlremote.hosts.requests import StartContext, StartRequest, StopRequest, stop_command
from jlremote.hosts.rollback import undone_on_failure
from jlremote.jobs import begin_scheduled, session_job
from jlremote.jupyter.survey import Survey, survey
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.listing.session_report import SessionReport
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.table import runtime_of
from jlremote.selection import naming, session_selection
from jlremote.sessions.start import start
from jlremote.sessions.stop import stop


def restart(selector: str, request: StopRequest, context: Context) -> SessionReport:
    """Stop a session as `stop` does, and start it with its ports, Python and idle stop.

    Raise as `stop`, and if what it runs in would be gone, or jlr did not launch it.
    """
    record = session_selection.chosen(
        selector, context, as_shared=request.force, guess=not request.destroys, by_name=True
    )
    runtime, host = runtime_of(record), link_of(record, context)
    with context.progress.step(f"Look for {record.name}"):
        found = survey(host, runtime, record.name)
    naming.refuse_other_owner(record.host, record.name, found.whose, agreed=request.force)
    _refuse_unless_it_stays(record, runtime, found, host)
    again = _again(record, runtime, found)
    stop(record.selector, request, context)
    if runtime.in_jobs:
        renew(record.selector, context)
        return start(again, context)
    report = start(again, context)
    if not report.started_here and not request.destroys:
        forced = stop_command(record.host, record.name, StopRequest(force=True, again=True))
        what = f"jlr did not launch the Jupyter of `{record.selector}`, so it still runs"
        raise JlrError(what, hint=f"`{forced}` ends it, too")
    return report


def _refuse_unless_it_stays(
    record: SessionRecord, runtime: Runtime, found: Survey, host: Link
) -> None:
    if runtime.in_jobs:
        session_job.kept_plan(host, record.name)
    if found.container is not None and found.container.options.remove:
        image = shlex.quote(str(found.container.image))
        begin = f"`jlr start {record.host} {record.name} --image {image}`"
        hint = f"`jlr stop {record.selector}` ends it; {begin} with its options creates it again"
        what = f"the container of `{record.selector}` is deleted when it stops (`--rm`)"
        raise JlrError(what, hint=hint)


def _again(record: SessionRecord, runtime: Runtime, found: Survey) -> StartRequest:
    server = found.server
    python = server.called if server and server.called.startswith("/") else None
    return StartRequest(
        record.host,
        record.name,
        runtime=record.runtime,
        ports=tuple(port for port in record.ports if not port.auto),
        python=python if runtime.on_host else None,
        idle_stop=server.idle_stop or None if server else None,
        record=found.findings is None or found.findings.recording.state != "off",
        allow_open=record.open_allowed,
        as_shared=record.shared,
    )


@dataclass(frozen=True)
class RenewReport:
    """The job that follows the present one of a session."""

    name: str
    host: str
    job: str  # the successor's id at the scheduler
    follows: str  # the id of the session's present job


def renew(selector: str | None, context: Context) -> RenewReport:
    """Submit a job to follow a session's, with its name and port (`NotFound`; `Usage`; `Busy`)."""
    record = session_selection.chosen(selector, context)
    runtime, host = runtime_of(record), link_of(record, context)
    if not runtime.in_jobs:
        raise Usage(f"`{record.selector}` is not a cluster job; nothing to renew")
    with context.progress.step(f"Look for {record.name}"):
        job, plan = session_job.following(host, record.name)
    with undone_on_failure() as undo:
        request = StartRequest(record.host, plan.name)
        start = StartContext(host, runtime, plan.name, request, context, undo)
        id_ = begin_scheduled.submit(start, plan, session_job.SESSIONS)
    return RenewReport(record.name, record.host, id_, str(job.job))
