"""Reports of sessions, as `jlr` shows them and `--json` prints them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jlremote.forwards import address
from jlremote.forwards.address import Address
from jlremote.forwards.jupyter_check import access_note
from jlremote.jupyter.endpoint import time_limit_warning
from jlremote.laptop.settings.options import NO_CONTAINER
from jlremote.link.wire.states import ForwardStatus, State
from jlremote.place.host.addresses import LOCALHOST
from jlremote.text import joined
from jlremote.times import utc

if TYPE_CHECKING:
    from jlremote.forwards.address import PortReport
    from jlremote.hosts.links import Unreached
    from jlremote.jupyter.api import Kernel
    from jlremote.jupyter.presence import Present
    from jlremote.laptop.sessions import SessionRecord
    from jlremote.mounts.known_mounts import MountReport
    from jlremote.place.host.job import Job


_NOT_IN_JSON = ("is_default", "started_here")


@dataclass(frozen=True)
class SessionReport:
    """A session as it is right now."""

    name: str
    host: str  # what was typed after `ssh`
    container: str | None  # the container's name, `None` with runtime `none`
    runtime: str  # an engine (`docker`), or `none`
    state: str  # a `State`
    since: str | None = None  # since when it is in that state, ISO 8601 in UTC, if that is known
    # one sentence that says why, where the state is not `up`, or what is wrong all the same
    detail: str | None = None
    # its addresses with the token, where one is known: for programs on 127.0.0.1, and for a
    # browser of an origin that only this session has
    url: str | None = None
    page: str | None = None
    local_port: int | None = None  # TCP port on 127.0.0.1
    image: str | None = None
    # the GPUs as the engine was asked for them (`all`, `0,2`, …), `None` for none
    gpus: str | None = None
    kernels: tuple[Kernel, ...] | None = None  # what runs, `None` where Jupyter was not asked
    # what Jupyter asks for: `token`, `password` or `open` (nothing, so that all users that reach
    # its port can run code); `None` where it was not asked
    access: str | None = None
    # seconds without work after which kernels and then Jupyter end by themselves, `None` for
    # never or unknown
    idle_stop: int | None = None
    # what keeps it from that now; `None` where there is no idle stop
    awake: tuple[str, ...] | None = None
    # of a session on a cluster: its job's id at the scheduler, the nodes of that, the seconds until
    # its time limit ends it, and why it waits; `None` where that is unknown
    job: str | None = None
    node: str | None = None
    time_left: int | None = None
    reason: str | None = None
    mounts: tuple[MountReport, ...] = ()  # its folders that are mounted on this machine
    ports: tuple[PortReport, ...] = ()
    # Not in JSON: whether commands mean it, of several, without SESSION; whether this very call
    # launched its Jupyter.
    is_default: bool = False
    started_here: bool = False

    @property
    def address(self) -> Address:
        """The URLs, empty for a session that is not up."""
        return Address(self.url or "", self.page or self.url or "")

    def to_json(self) -> dict[str, Any]:
        facts = {name: value for name, value in vars(self).items() if name not in _NOT_IN_JSON}
        for name in ("kernels", "mounts", "ports"):
            if facts[name] is not None:
                facts[name] = [each.to_json() for each in facts[name]]
        return facts


def of_record(
    record: SessionRecord, state: str, since: str | None = None, detail: str | None = None
) -> SessionReport:
    """Report a session by its record and its state alone."""
    return SessionReport(
        name=record.name,
        host=record.host,
        container=record.container,
        runtime=record.runtime,
        state=str(state),
        local_port=record.local_port,
        since=since,
        detail=detail,
        image=record.image,
        gpus=record.gpus,
    )


def of_unreached(record: SessionRecord, why: Unreached) -> SessionReport:
    """Report a session whose host is not reached."""
    report = of_record(record, why.state, why.since, why.detail)
    return replace(report, ports=address.reports(record, why))


def of_forward(
    record: SessionRecord,
    forward: ForwardStatus,
    access: str | None = None,
    hostname: str = LOCALHOST,
) -> SessionReport:
    """Report a session by its forward, what its server asks for, and its name in a browser."""
    report = of_record(record, forward.state, utc(forward.since), forward.detail)
    if called := forward.endpoint.place.called:
        why = f"its container is now called `{called}`"
        report = replace(report, container=called, detail=joined(forward.detail, why))
    if forward.state != State.UP:
        return report
    urls, idle_stop = address.address_of(forward, hostname), forward.server.idle_stop or None
    known = replace(report, url=urls.url, page=urls.page, idle_stop=idle_stop)
    if access is None:
        return known
    detail = joined(access_note(access, record.host), report.detail)
    return replace(known, access=str(access), detail=detail)


def with_job(report: SessionReport, job: Job | None) -> SessionReport:
    """Add to a session's report what its job at a scheduler says, if it has one."""
    if job is None:
        return report
    report = replace(report, job=job.job, node=job.node, reason=job.reason, gpus=job.gpus)
    if job.state == "waiting" and report.state not in (State.UP, State.STOPPED):
        report = replace(report, state=str(State.QUEUED))  # again, where it was requeued
    if report.state == State.QUEUED:
        why = job.waits or job.detail
        return replace(report, detail=f"job {job.job} waits: {why}") if why else report
    if job.over and report.state not in (State.STOPPED, State.IDLE_STOPPED):
        known = report.state == State.JOB_ENDED or not job.detail
        ended = report.detail if known else f"its job ended: {job.detail}"
        return replace(report, state=str(State.JOB_ENDED), url=None, page=None, detail=ended)
    if job.state in ("running", "unknown") and job.detail:
        report = replace(report, detail=joined(report.detail, job.detail))
    return with_time_left(report, None if job.until is None else job.until - time.time())


def with_time_left(report: SessionReport, seconds: float | None) -> SessionReport:
    """Add to a report the time until its job's limit, and a warning before the end."""
    if seconds is None:
        return report
    report = replace(report, time_left=max(0, round(seconds)))
    ends = time_limit_warning(report.host, report.name, time.time() + seconds)
    if ends is None or report.state != State.UP:
        return report
    return replace(report, detail=joined(ends, report.detail))


def of_job(host: str, job: Job) -> SessionReport:
    """Report a session of a cluster that is not forwarded here, by its job."""
    state = State.QUEUED if job.state == "waiting" else State.RUNNING
    return with_job(SessionReport(job.name, host, None, "slurm", str(state)), job)


def of_present(host: str, present: Present) -> SessionReport:
    """Report a session of a host that is not forwarded here."""
    running = State.RUNNING if present.jupyter else State.STOPPED
    return SessionReport(
        name=present.name,
        host=host,
        container=None if present.runtime in NO_CONTAINER else present.name,
        runtime=present.runtime,
        state=present.halted or str(running),
        image=present.image,
        gpus=present.gpus,
    )
