"""`jlr forward`: further ports of a session, for TensorBoard or another web app."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from jlremote.errors import Busy, NotFound
from jlremote.forwards.address import PortReport, report, reports
from jlremote.forwards.local_ports import check_free, hold, host_port
from jlremote.hosts import halted
from jlremote.hosts.context import Context
from jlremote.hosts.links import ASKS_NOTHING, Unreached, link_of, status_of, undisturbed
from jlremote.hosts.rollback import undone_on_failure
from jlremote.jupyter.endpoint import Endpoint
from jlremote.jupyter.locate import place_of
from jlremote.jupyter.survey import survey
from jlremote.laptop import sessions
from jlremote.laptop.sessions import PortRecord
from jlremote.place.runtimes.table import runtime_of
from jlremote.selection import destruction, session_selection


def add(
    selector: str | None,
    port: int,
    context: Context,
    *,
    exact: int | None = None,
    on_host: bool = False,
) -> PortReport:
    """Forward a port of a session's container, to the same local port if that is free.

    With `on_host` it is a port of the host itself. With `exact`, only that local port will do. A
    program need not listen on it yet: the report's state tells.

    Raises:
        Busy: the exact local port is taken.
        NotFound: there is no such session, or it was stopped.
        JlrError: its container is not there, or does not run.
    """
    record = session_selection.chosen(selector, context)
    if not record.forwarded:
        unknown = f"the session `{record.selector}` does not run"
        link = link_of(record, replace(context, asker=ASKS_NOTHING))
        if not isinstance(status_of(link, undisturbed), Unreached):
            halted.check(link, record)
        raise NotFound(unknown, hint=halted.again(record))
    link, runtime = link_of(record, context), runtime_of(record)
    free = f"`jlr forward {record.selector} {port}{' --host' if on_host else ''}` takes a free one"
    if exact is not None and exact not in record.local_ports:
        with _hinted(free):
            check_free(exact, record.host, record.name)
    with undone_on_failure() as undo:
        with context.progress.step(
            f"Look for port {port} of {link.name if on_host else record.name}"
        ):
            if on_host:
                to = host_port(link, port)
            else:
                found = survey(link, runtime, record.name)
                container = halted.running(record, runtime, found.container)
                python = found.server.python if found.server else ""
                to = Endpoint(place_of(runtime, container), port, python=python)
            with _hinted(free):
                held = hold(link, record.name, to, context.progress, undo, exact=exact)
        known = PortRecord(port, held.local_port, on_host)
        sessions.save(record.with_port(known))
    return report(record, known, held)


@contextmanager
def _hinted(hint: str) -> Iterator[None]:
    try:
        yield
    except Busy as busy:
        busy.hint = hint
        raise


def listed(selector: str | None, context: Context) -> list[PortReport]:
    """Return the forwarded ports of a session, each checked just now.

    Raises:
        NotFound: there is no such session.
    """
    record = session_selection.chosen(selector, context)
    if not record.forwarded or not record.ports:
        return []
    link = link_of(record, context)
    status = status_of(link)
    if isinstance(status, Unreached):
        return list(reports(record, status))
    return [report(record, port, link.check(record.name, port.port)) for port in record.ports]


def remove(selector: str | None, port: int, context: Context) -> None:
    """Stop forwarding a port.

    Raises:
        NotFound: there is no such session, or it has no such port.
        Usage: the session must be named, as several have the port.
    """
    if selector is None:
        having = [r for r in sessions.load_all() if port in {known.port for known in r.ports}]
        if len(having) > 1:
            commands = [f"jlr forward {shlex.quote(r.selector)} --remove {port}" for r in having]
            raise destruction.unnamed("--remove", len(having), commands)
    record = session_selection.chosen(selector, context)
    rest = tuple(known for known in record.ports if known.port != port)
    if rest == record.ports:
        raise NotFound(
            f"port {port} of `{record.selector}` is not forwarded",
            hint=f"`jlr forward {record.selector}` lists the forwarded ports",
        )
    link_of(record, context).unforward(record.name, port)
    sessions.save(replace(record, ports=rest))
