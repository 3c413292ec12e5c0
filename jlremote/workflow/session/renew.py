"""`jlr renew`: submit a successor of a session's job, which takes over when that is over."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from jlremote.errors import Usage
from jlremote.runtimes.table import runtime_named
from jlremote.workflow.container.start_context import StartContext
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import link_of
from jlremote.workflow.host.requests import StartRequest
from jlremote.workflow.host.rollback import undone_on_failure
from jlremote.workflow.jobs import scheduled, session_job
from jlremote.workflow.selection import session_selection


@dataclass(frozen=True)
class RenewReport:
    """The job that follows a session's."""

    name: str
    host: str
    job: str  # the successor's id at the scheduler
    follows: str  # the id of the session's present job

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def renew(selector: str | None, context: Context) -> RenewReport:
    """Submit a job like the session's, which begins when that is over and has its name and port.

    Raises:
        NotFound: there is no such session, or it has no job.
        Usage: it is not a job of a cluster.
        Busy: it has a successor already.
        JlrError: the scheduler refused it.
    """
    record = session_selection.chosen(selector, context)
    called = f"{record.host}/{record.name}"
    runtime = runtime_named(record.runtime)
    if not runtime.in_jobs:
        raise Usage(f"`{called}` is no job of a cluster, and has no time limit")
    host = link_of(record, context)
    with context.progress.step(f"Look for {record.name}"):
        job, plan = session_job.following(host, record.name)
    with undone_on_failure() as undo, ExitStack() as unused:
        request = StartRequest(record.host, plan.name)
        start = StartContext(host, runtime, plan.name, request, context, unused)
        undo.callback(scheduled.take_back, start, plan, session_job.SESSIONS)
        id_ = scheduled.submit(start, plan, session_job.SESSIONS)
    return RenewReport(record.name, record.host, id_, str(job.job))
