"""Resolve a typed name to a session: by the records of this laptop, else on its host.

Or to a place of commands: a session, another container, or a host itself. `host_search` is loaded
only for what has to be looked for; it would double the time that a command takes to load.
"""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import NotFound
from jlremote.hosts.context import Context
from jlremote.hosts.links import connect, link_of, link_on
from jlremote.laptop import job_records, sessions
from jlremote.laptop.record_files import Named, hint_of_missing, matching
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.typed_place import host_word, leash, resolved
from jlremote.link.client.link import Link
from jlremote.place.runtimes.place import Place, of_record


def chosen(
    selector: str | None,
    context: Context,
    *,
    or_job: bool = False,
    as_shared: bool = False,
    guess: bool = True,
    by_name: bool = False,
) -> SessionRecord:
    """Return the record of the session that a typed place stands for; by default the latest.

    A session of a host without a record is looked for there, and forwarded if it runs. A host
    stands for its only session, unless that must be given `by_name`. With `or_job` the command
    takes jobs, too, and no job has the name; with `as_shared` another user's session may be joined;
    without `guess` no hint names another session, as where that would be deleted. Raise `NotFound`
    if there is none, `JlrError` if it is another user's, `Usage` if several hosts have one.
    """
    if selector is None and (only := leash()) is not None:
        selector = f"{only.host}/{only.name}"
    if selector is None:
        return sessions.latest()
    place = resolved(selector, context.ssh_config, context.progress.note)
    if place.session is not None:
        return place.session
    if place.host is not None and place.name is None:
        return _only_session(place.host, context, by_name=by_name)
    from jlremote.selection import host_search

    try:
        if place.host is not None:
            return host_search.adopted(place.host, str(place.name), context, as_shared=as_shared)
        # What a link knows of a name may be old by now: never for what is deleted.
        if guess and (renamed := host_search.renamed(str(place.name), context)):
            return renamed
        raise _missing(str(place.name), None, or_job=False, guess=guess)
    except NotFound:
        for job in () if or_job else matching(job_records.load_all(), selector):
            hint = f"`jlr job attach {job.host}/{job.name}` shows its output"
            raise NotFound(f"`{selector}` is a job and not a session", hint=hint) from None
        if guess and not or_job:
            raise
        raise _missing(selector, place.host, or_job=or_job, guess=guess) from None


def running(selector: str | None, context: Context, *, as_shared: bool = False) -> SessionRecord:
    """Return the record of a session, forwarded if it runs; see `chosen`."""
    record = chosen(selector, context, as_shared=as_shared)
    if record.forwarded:
        return record
    from jlremote.selection import host_search

    return host_search.forwarded_again(record, context, as_shared=as_shared)


def _only_session(host: str, context: Context, *, by_name: bool) -> SessionRecord:
    known = [record for record in sessions.load_all() if record.host == host]
    if len(known) == 1 and not by_name:
        context.progress.note(f"`{host}` is a host; `{known[0].selector}` is its only session here")
        return known[0]
    names = ", ".join(f"`{record.selector}`" for record in known)
    hint = f"name one: {names}" if known else f"`jlr list {host}` shows its sessions"
    raise NotFound(f"`{host}` is a host and not a session", hint=hint)


def _missing(selector: str, host: str | None, *, or_job: bool, guess: bool) -> NotFound:
    where = f" {host}" if host else ""
    lists = [f"`jlr {each}{where}`" for each in ("list", "job list")[: 1 + or_job]]
    shown = f"{' and '.join(lists)} {'show' if or_job else 'shows'} all"
    known: list[Named] = [*sessions.load_all(), *job_records.load_all()] if guess else []
    hint = hint_of_missing(known, selector, f"{shown}; what was removed is gone")
    what = "neither a session nor a job" if or_job else "no session"
    return NotFound(f"there is {what} `{selector}`", hint=hint)


def known_place(where: str | None, context: Context) -> tuple[Link, Place] | None:
    """Return the place of a session that this laptop knows, and its link, which may prove it."""
    if where is None:
        record: SessionRecord | None = sessions.latest()
    else:
        record = resolved(where, context.ssh_config, context.progress.note).session
    return None if record is None else (link_of(record, context), of_record(record))


def place_of(where: str | None, context: Context, *, as_shared: bool = False) -> tuple[Link, Place]:
    """Return the place and link of a session, else a container or host (`NotFound`: none runs)."""
    typed = None if where is None else resolved(where, context.ssh_config)
    if typed is not None and typed.host is not None and typed.name is None:
        return _host_itself(typed.host, context)
    try:
        record = chosen(where, context, as_shared=as_shared)
    except NotFound as missing:
        if typed is None:
            raise
        if typed.host is None:  # a host that only ssh knows
            return _host_itself(str(where), context)
        link = link_on(typed.host, context)
        return link, _any_container(link, str(typed.name), missing, as_shared=as_shared)
    link = link_of(record, context)
    _check_runs(link, record, as_shared=as_shared)
    return link, of_record(record)


def _any_container(link: Link, typed: str, missing: NotFound, *, as_shared: bool) -> Place:
    from jlremote.hosts.engines import engine_if_any, others
    from jlremote.place.runtimes.engine.engine_errors import EngineUnusable
    from jlremote.place.runtimes.engine_containers import Containers
    from jlremote.selection import host_search

    engine, host = engine_if_any(link), link.name
    for each in (engine, *others(link, engine)):
        with suppress(*(() if each is engine else (EngineUnusable,))):
            found = host_search.running(link, Containers(each), typed, as_shared=as_shared)
            if found is not None:
                return Place(each.name, found.name, selector=f"{host}/{found.name}")
    there = f"`jlr shell {host_word(host)}` opens a shell on the host"
    shows = f"`jlr list {host} --all` shows all; {there}"
    hint = hint_of_missing(sessions.load_all(), f"{host}/{typed}", shows)
    what = f"there is neither a session nor a container `{typed}` on `{host}`"
    raise NotFound(what, hint=hint) from missing


def _host_itself(host: str, context: Context) -> tuple[Link, Place]:
    link = connect(link_on(host, context), context)
    return link, Place("none", host, selector=host_word(host))


# The engine's own message, for a container that does not run, would come unformatted.
def _check_runs(host: Link, record: SessionRecord, *, as_shared: bool) -> None:
    from jlremote.hosts import halted
    from jlremote.place.runtimes.runtime import WHO
    from jlremote.selection import naming

    runtime, agreed = of_record(record).runtime, as_shared or record.shared
    answers = host.run({**runtime.describe(record.name), **WHO})
    container = runtime.read(record.name, answers)
    if container is not None:
        owner = container.owner_beside(answers["user"].stdout.strip())
        naming.refuse_other_owner(record.host, record.name, owner, agreed=agreed)
    halted.running(record, runtime, container)
