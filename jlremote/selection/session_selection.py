"""Resolve a typed name to a session: by the records of this laptop, else on its host.

`host_search` is loaded only for a session that has to be looked for; it would double the time that
a command takes to load.
"""

from __future__ import annotations

from jlremote.errors import NotFound
from jlremote.hosts.context import Context
from jlremote.hosts.links import known_hosts
from jlremote.laptop import job_records, sessions
from jlremote.laptop.record_files import Named, hint_of_missing, matching
from jlremote.laptop.sessions import SessionRecord


def chosen(
    selector: str | None,
    context: Context,
    *,
    or_job: bool = False,
    as_shared: bool = False,
    guess: bool = True,
) -> SessionRecord:
    """Return the record of the session called `NAME` or `HOST/NAME`; by default the latest.

    A session of `HOST` without a record is looked for there, and forwarded if it runs. With
    `or_job` the command takes jobs, too, and no job has the name; with `as_shared` another user's
    session may be joined; without `guess` no hint names another session, as where that would be
    deleted.

    Raises:
        JlrError: it is another user's.
        NotFound: there is no such session, neither here nor on the host.
        Usage: sessions on several hosts are called so.
    """
    try:
        return _here_or_on_host(selector, context, as_shared=as_shared, guess=guess)
    except NotFound:
        if selector is None or selector in {r.host for r in sessions.load_all()}:
            raise
        if selector in known_hosts(context):
            raise NotFound(
                f"`{selector}` is a host and not a session",
                hint=f"`jlr list {selector}` shows its sessions",
            ) from None
        for job in () if or_job else matching(job_records.load_all(), selector):
            raise NotFound(
                f"`{selector}` is a job and not a session",
                hint=f"`jlr job attach {job.host}/{job.name}` shows its output",
            ) from None
        if guess and not or_job:
            raise
        host = selector.rpartition("/")[0]
        lists = [f"`{f'jlr {one} {host}'.strip()}`" for one in ("list", "job list")[: 1 + or_job]]
        shown = f"{' and '.join(lists)} {'show' if or_job else 'shows'} all"
        known: list[Named] = [*sessions.load_all(), *job_records.load_all()] if guess else []
        raise NotFound(
            f"there is {'neither a session nor a job' if or_job else 'no session'} `{selector}`",
            hint=hint_of_missing(known, selector, f"{shown}; what was removed is gone"),
        ) from None


def is_session(place: str, context: Context) -> bool:
    """Return whether a typed place is a session; the name of a known host is the host."""
    if "/" in place.removeprefix("ssh://"):
        return True
    known = matching(sessions.load_all(), place)
    return bool(known) and place not in known_hosts(context)


def running(selector: str | None, context: Context, *, as_shared: bool = False) -> SessionRecord:
    """Return the record of a session, forwarded if it runs; see `chosen`."""
    record = chosen(selector, context, as_shared=as_shared)
    if record.forwarded:
        return record
    from jlremote.selection import host_search

    return host_search.forwarded_again(record, context, as_shared=as_shared)


def _here_or_on_host(
    selector: str | None, context: Context, *, as_shared: bool, guess: bool
) -> SessionRecord:
    host, slash, name = (selector or "").rpartition("/")
    try:
        return sessions.choose(selector)
    except NotFound:
        if selector is None:
            raise
        from jlremote.selection import host_search

        if not slash:
            # What a link knows of a name may be old by now: never for what is deleted.
            if guess and (renamed := host_search.renamed(selector, context)):
                return renamed
            raise
    return host_search.adopted(host, name, context, as_shared=as_shared)
