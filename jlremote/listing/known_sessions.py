"""Reports of this laptop's sessions, from their records, their link and their servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from jlremote.containers import recording
from jlremote.errors import JlrError
from jlremote.forwards import address
from jlremote.forwards.jupyter_check import silent_host, why_silent
from jlremote.forwards.local_ports import bring_back
from jlremote.hosts import halted
from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_if_any
from jlremote.hosts.links import Unreached, is_connected, link_of, status_of
from jlremote.jupyter import scripts
from jlremote.jupyter.api import Access, AccessRefused, JupyterApi, NoAnswer
from jlremote.jupyter.endpoint import hostname
from jlremote.jupyter.presence import Presence, look
from jlremote.jupyter.survey import refuse_halted
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import ForwardStatus, LinkStatus, State
from jlremote.listing import session_report
from jlremote.listing.session_report import SessionReport, of_forward, of_record
from jlremote.place.host.contract import run_script
from jlremote.place.host.job import Job
from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.table import runtime_of, runtimes
from jlremote.text import joined, one_line

ANSWER_SECONDS = 5.0


def of(
    records: Sequence[SessionRecord],
    context: Context,
    ask: Callable[[Link], LinkStatus],
    told: Callable[[Link], Mapping[str, Job]] | None = None,
) -> list[SessionReport]:
    """Report sessions that share a link; `told` gives the jobs of a cluster."""
    link = link_of(records[0], context)
    status = status_of(link, ask)
    if isinstance(status, Unreached):
        return [session_report.of_unreached(record, status) for record in records]
    jobs: Mapping[str, Job] = {}
    kinds = (runtimes().get(record.runtime) for record in records)  # a newer jlr may have more
    if any(runtime.in_jobs for runtime in kinds if runtime):
        from jlremote.jobs import session_job  # loads all that submits jobs, too

        jobs = (told or session_job.read_jobs)(link)  # it notes ends that only the scheduler knows
    listed = []
    for record in records:
        report = _report_of(link, status, record)
        if record.ports:  # asked now: the session may just have been restored
            known = link.status().further(record.name)
            report = replace(report, ports=address.reports(record, known))
        listed.append(session_report.with_job(report, jobs.get(report.name)))
    return listed


def of_stopped(records: Sequence[SessionRecord], context: Context) -> list[SessionReport] | None:
    """Report a host's stopped sessions whose containers did not end; `None` if not connected."""
    link = link_of(records[0], context)
    if not is_connected(link):
        return None
    with suppress(JlrError):
        return stopped_among(records, look(link, engine_if_any(link)))
    return []


def stopped_among(records: Sequence[SessionRecord], presence: Presence) -> list[SessionReport]:
    """Report the stopped sessions whose containers run on the host, or are paused there."""
    every = [one.container for one in presence.containers]
    alive = [each for each in every if each.running or each.paused or each.restarting]
    return [
        _stopped_in(record, container)
        for record in records
        for container in alive
        if record.runtime == presence.runtime
        and record.engine_name in (container.name, container.id)
    ]


def of_left(
    record: SessionRecord, context: Context, ask: Callable[[Link], LinkStatus]
) -> SessionReport:
    """Report a stopped session, with the state of its container if the host answers."""
    try:
        runtime, link = runtime_of(record), link_of(record, context)
        if not runtime.has_containers:
            return of_record(record, State.STOPPED)
        status = status_of(link, ask)
        if not isinstance(status, Unreached):
            return _stopped_in(record, halted.container_of(link, runtime, record))
        unknown = f"its host was not asked: {status.detail}"
    except JlrError as failure:
        unknown = f"its container is not known: {failure.message}"
    return of_record(record, State.STOPPED, None, unknown)


def _stopped_in(record: SessionRecord, container: Container | None) -> SessionReport:
    try:
        refuse_halted(record.host, record.name, runtime_of(record), container)
    except JlrError as ended:
        return _lost(record, ended)
    return of_record(record, State.STOPPED)


def _report_of(link: Link, status: LinkStatus, record: SessionRecord) -> SessionReport:
    try:
        forward = status.forward(record.name) or bring_back(link, record)
    except JlrError as gone:
        return _lost(record, gone)
    if forward.state != State.UP and status.state == State.UP:  # it may work again
        forward = link.check(record.name) or forward
    if forward.state != State.UP:
        return of_forward(record, forward)
    try:
        with link.waiting():
            return with_cells(link, record, _asked(link, record, forward))
    except JlrError as silent:
        if not link.answers():
            return of_record(record, State.RECONNECTING, None, silent_host(link.name).message)
        return _explained(link, record, forward, silent)


def _asked(link: Link, record: SessionRecord, forward: ForwardStatus) -> SessionReport:
    api = JupyterApi(forward.local_port, forward.server, ANSWER_SECONDS)
    name = api.accepted_name(hostname(record.host, record.name))
    try:
        kernels = api.kernels()
    except AccessRefused:
        return of_forward(record, forward, Access.PASSWORD, name)
    access = Access.TOKEN if forward.server.token else Access.OPEN
    report = replace(of_forward(record, forward, access, name), kernels=kernels)
    if report.idle_stop is None:
        return report
    keeping = [f"the kernel of {kernel.notebook}" for kernel in kernels if kernel.state == "busy"]
    if open_ones := api.terminals():
        keeping.append(f"{open_ones} terminal{'s' if open_ones > 1 else ''}")
    runtime = runtimes()[record.runtime]
    look = scripts.session_directory(runtime, record.name) + 'cat "$directory/awake" 2>/dev/null; :'
    done = run_script(link, runtime.inside(record.name, runtime.on_machine(record.name, look)))
    keeping += [one_line(line) for line in done.stdout.splitlines()[:10]]
    return replace(report, awake=tuple(keeping))


def with_cells(
    link: Link, record: SessionRecord, report: SessionReport, *, idle: bool = False
) -> SessionReport:
    """Add to a report how long cells have been running, and whether the recorder has ended.

    The host is asked if a kernel is busy, with `idle` if all are idle.
    """
    kernels = report.kernels or ()
    if not kernels or any(kernel.state == "busy" for kernel in kernels) == idle:
        return report
    try:
        now = recording.recording_of(link, runtime_of(record), record.name)
    except JlrError:
        return report
    run = {kernel: round(seconds) for kernel, seconds in now.running.items()}
    timed = tuple(replace(each, running=run.get(each.id)) for each in kernels)
    lost = recording.ENDED if now.state == "dead" else None
    return replace(report, kernels=timed, detail=joined(lost, report.detail))


def _explained(
    link: Link, record: SessionRecord, forward: ForwardStatus, silent: JlrError
) -> SessionReport:
    try:
        now = link.check(record.name)
        if now is None or (now.state == State.UP and now.endpoint == forward.endpoint):
            if isinstance(silent, NoAnswer):
                silent = why_silent(link, forward, silent)
            return _lost(record, silent)
        if now.state != State.UP:
            return of_forward(record, now)
        return with_cells(link, record, _asked(link, record, now))
    except JlrError as gone:
        return _lost(record, gone)


def _lost(record: SessionRecord, error: JlrError) -> SessionReport:
    return of_record(record, error.state or State.DOWN, None, error.message)
