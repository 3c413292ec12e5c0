"""`jlr list`: sessions, and containers of a host, as they are right now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from jlremote.errors import JlrError, NotFound
from jlremote.forwards.listening import with_listening
from jlremote.hosts import links
from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_if_any
from jlremote.hosts.halted import gpu_fault
from jlremote.jobs import session_job
from jlremote.jupyter.presence import Presence, is_session, look, owner, runs_jupyter
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.settings import settings
from jlremote.laptop.settings.options import is_pool
from jlremote.link.client.link import Link
from jlremote.link.wire.states import State
from jlremote.listing import known_sessions
from jlremote.listing.session_report import SessionReport, of_job, of_present
from jlremote.mounts import known_mounts
from jlremote.place.host.job import Job
from jlremote.selection import session_selection
from jlremote.text import joined

HOSTS_AT_ONCE = 16


def reports(context: Context, host: str | None = None) -> list[SessionReport]:
    """Report the sessions, the latest first; stopped ones if their host is connected.

    With `host`, report those of that host or pool, also of other laptops; the user may be asked.
    """
    for path in sessions.unreadable():
        context.progress.note(f"ignoring `{path}`: it is not the record of a session")
    if host is not None:
        group = of_pool(context, host) if is_pool(host) else on_host(context, host)
        return _with_default(group)
    records = sessions.load_all()
    quiet = replace(context, asker=links.ASKS_NOTHING)
    live = _by_link([record for record in records if record.forwarded])
    over = _by_link([record for record in records if not record.forwarded])
    with ThreadPoolExecutor(HOSTS_AT_ONCE) as pool:
        here = list(pool.map(lambda them: known_sessions.of(them, quiet, links.undisturbed), live))
        # Afterwards, because the first questions may have connected their hosts.
        ended = list(pool.map(lambda them: known_sessions.of_stopped(them, quiet), over))
    known = {(r.host, r.name): r for group in (*here, *ended) for r in group or ()}
    places = [(record.host, record.name) for record in records]
    listed = [known[session] for session in places if session in known]
    if unasked := [of[0].host for of, group in zip(over, ended, strict=True) if group is None]:
        names, asks = ", ".join(f"`{host}`" for host in unasked), f"`jlr list {unasked[0]}` asks"
        context.progress.note(f"not connected, so not asked for stopped sessions: {names}; {asks}")
    waiting = {r.host: r.name for r in reversed(listed) if r.state == State.NEEDS_AUTH}
    for at, name in waiting.items():
        context.progress.note(f"`{at}` waits for you: run `jlr list {at}/{name}` in a terminal")
    return _with_default(with_mounts(listed, quiet))


def _with_default(listed: list[SessionReport]) -> list[SessionReport]:
    with suppress(NotFound):
        default = sessions.latest()
        place = default.host, default.name
        several = len(listed) > 1
        return [replace(r, is_default=several and (r.host, r.name) == place) for r in listed]
    return listed


def of_pool(context: Context, pool: str) -> list[SessionReport]:
    """Report the sessions of a pool's hosts; one silent host is a note, all are a `JlrError`."""
    hosts = settings.load().pool(pool)
    answers = links.ask_each(hosts, lambda host, its: on_host(its, host), context)
    links.note_silent(answers, context)
    return [report for one in answers for report in one.answer or ()]


def on_host(context: Context, host: str) -> list[SessionReport]:
    """Report a host's sessions, this laptop's first (`JlrError`: it is away, and none is known)."""
    known = [r for r in sessions.load_all() if r.host == host]
    records = [r for r in known if r.forwarded]
    all_jobs: dict[str, Job] = {}  # the scheduler is asked only once, as its answer is slow

    def jobs_of(link: Link) -> Mapping[str, Job]:
        all_jobs.update(session_job.read_jobs(link))
        return all_jobs

    listed: list[SessionReport] = []
    for them in _by_link(records):
        listed += known_sessions.of(them, context, links.connected_status, jobs_of)
    try:
        found = presence(host, context)
    except JlrError as unreached:
        if not records:
            raise
        context.progress.note(f"cannot ask `{host}` for other sessions: {unreached.message}")
        return with_mounts(listed, context)
    ids = {record.container_id for record in records}
    renamed = {one.container.name for one in found.containers if one.container.id in ids}
    here = {record.name for record in records} | renamed
    known_jobs = all_jobs or jobs_of(links.link_on(host, context))
    jobs = [job for job in known_jobs.values() if not job.over]
    if found.engine_failure and not jobs:
        context.progress.note(f"cannot list its containers: {found.engine_failure.message}")
    others = [of_present(host, one) for one in found.sessions if one.name not in here]
    others += [of_job(host, job) for job in jobs if job.name not in here]
    present = {one.container.id: one.container.name for one in found.containers}
    here = {report.name for report in others}
    over = [r for r in known if not r.forwarded and present.get(r.container_id, r.name) not in here]
    return [*with_mounts(listed, context), *others, *known_sessions.stopped_among(over, found)]


def _by_link(records: Sequence[SessionRecord]) -> list[list[SessionRecord]]:
    groups: dict[tuple[str, str | None], list[SessionRecord]] = defaultdict(list)
    for record in records:
        groups[record.host, record.ssh_config].append(record)
    return list(groups.values())


def report(selector: str | None, context: Context, *, listening: bool = False) -> SessionReport:
    """Report a session (else `NotFound`), maybe with what listens; a stopped one is not asked."""
    record = session_selection.chosen(selector, context)
    if not record.forwarded:
        quiet = replace(context, asker=links.ASKS_NOTHING)
        return with_mounts([known_sessions.of_left(record, quiet, links.undisturbed)], context)[0]
    [shown] = with_mounts(known_sessions.of([record], context, links.connected_status), context)
    link = links.link_of(record, context)
    shown = known_sessions.with_cells(link, record, shown, idle=True)
    if listening and shown.state == State.UP:
        shown = replace(shown, ports=with_listening(shown.ports, link, record))
    lost = gpu_fault(link, record) if shown.state == State.UP else None
    if lost is None:
        return shown
    return replace(shown, detail=joined(f"but {lost.message}; {lost.hint}", shown.detail))


def with_mounts(listed: list[SessionReport], context: Context) -> list[SessionReport]:
    """Add to reports the folders of sessions that are mounted here."""
    mounted = known_mounts.reports(context, connect=False)
    return [
        replace(r, mounts=tuple(m for m in mounted if m.record.of_session(r.host, r.name)))
        for r in listed
    ]


@dataclass(frozen=True)
class ContainerReport:
    """A container of a host."""

    name: str
    id: str  # the engine's full id
    image: str | None
    status: str  # the engine's word: `running`, `paused`, `exited`, `created`, …
    jupyter: bool  # whether a Jupyter server runs in it
    session: bool  # whether jlr made it, or launched its Jupyter
    # its likely owner: the user in jlr's label, else of its processes, or of a home folder in it;
    # `None` if unknown
    owner: str | None
    gpus: str | None  # the GPUs as the engine was asked for them, `None` for none

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def presence(host: str, context: Context) -> Presence:
    """Return a host's containers and sessions, of all users; else raise `JlrError`."""
    link = links.connect(links.link_on(host, context), context)
    with context.progress.step(f"Look for containers on {host}"):
        return look(link, engine_if_any(link))


def containers(host: str, context: Context) -> list[ContainerReport]:
    """Report all containers of a host, by name; `JlrError` if it or its engine cannot be asked."""
    present = presence(host, context)
    if present.engine_failure:
        raise present.engine_failure
    reports = []
    for glimpse in present.containers:
        box, has = glimpse.container, (runs_jupyter(glimpse), is_session(glimpse), owner(glimpse))
        reports.append(ContainerReport(box.name, box.id, box.image, glimpse.status, *has, box.gpus))
    return reports
