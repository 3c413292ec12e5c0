"""Sessions that this laptop does not know yet: found on their host, and recorded here.

A container has the typed name, one by the naming template, or by another laptop's.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace

from jlremote.errors import Authentication, JlrError, NotFound, Unreachable, Usage
from jlremote.forwards import local_ports
from jlremote.forwards.jupyter_check import refuse_open, wait_for_answer
from jlremote.hosts.context import Context, known_way
from jlremote.hosts.engines import engine_if_any
from jlremote.hosts.links import connect, link_of, link_to
from jlremote.hosts.requests import StartRequest
from jlremote.hosts.rollback import undone_on_failure
from jlremote.jupyter.locate import server_endpoint
from jlremote.jupyter.survey import Survey, refuse_halted, survey
from jlremote.laptop import sessions
from jlremote.laptop.record_files import hint_of_missing
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.settings import settings
from jlremote.link.client.link import Link
from jlremote.place.host.contract import Host
from jlremote.place.runtimes.engine.engine_errors import EngineSilent
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Container, Runtime
from jlremote.place.runtimes.table import OF_PROCESSES, on_nodes, runtime_of
from jlremote.selection import naming


def renamed(name: str, context: Context) -> SessionRecord | None:
    """Return the session of a container that was renamed, if a running link knows of it."""
    known = sessions.load_all()
    names: set[tuple[str, str]] = set()
    for record in {(record.host, record.ssh_config): record for record in known}.values():
        with suppress(JlrError):  # no link runs
            every = link_of(record, context).status().forwards
            of_name = (each for each in every if each.endpoint.place.called == name)
            names.update((record.host, forward.session) for forward in of_name)
    return sessions.find(*names.pop()) if len(names) == 1 else None


def forwarded_again(record: SessionRecord, context: Context, *, as_shared: bool) -> SessionRecord:
    """Return a session that was stopped here, forwarded if it runs again and is no other user's."""
    link, runtime = connect(link_of(record, context), context), runtime_of(record)
    state, agreed = survey(link, runtime, record.name), as_shared or record.shared
    naming.refuse_other_owner(record.host, record.name, state.whose, agreed=agreed)
    record = replace(record, shared=state.whose is not None)
    with undone_on_failure() as undo:
        again = _forwarded(link, record, runtime, state, context, undo)
        if again.forwarded:
            sessions.save(again)
    return again


def adopted(host: str, typed: str, context: Context, *, as_shared: bool) -> SessionRecord:
    """Find a session on its host, record and forward it (`NotFound`, `JlrError`: another's)."""
    sessions.check_writable()
    context = known_way(host, context)
    link = connect(link_to(host, context, without=typed), context)
    with context.progress.step(f"Look for {typed}"):
        seen = _found(link, typed)
    if seen is None:
        hint = f"`jlr list {host}` shows all; `jlr start {host} {shlex.quote(typed)}` starts one"
        hint = hint_of_missing(sessions.load_all(), f"{host}/{typed}", hint)
        raise NotFound(f"there is no session `{typed}` on `{host}`", hint=hint)
    runtime, container, state = seen
    name = container.name
    naming.refuse_other_owner(host, name, state.whose, agreed=as_shared)
    short = None if name == typed else typed
    if (known := sessions.find(host, name)) is not None:  # the full name was not typed
        record = replace(known, typed=short)
        sessions.save(record)
        return record
    if (known := sessions.of_container(host, container.id)) is not None:  # it was renamed
        return known
    config = None if context.ssh_config is None else str(context.ssh_config.resolve())
    record = SessionRecord(
        host,
        name,
        runtime.name,
        local_ports.first_candidate(host, name),
        typed=short,
        ssh_config=config,
        image=container.image,
        gpus=container.gpus,
        container_id=container.id if runtime.engine else "",
        shared=state.whose is not None,
        forwarded=False,
    )
    with undone_on_failure() as undo:
        record = _forwarded(link, record, runtime, state, context, undo)
        sessions.save(record)
    return record


def _forwarded(
    link: Link,
    record: SessionRecord,
    runtime: Runtime,
    state: Survey,
    context: Context,
    undo: ExitStack,
) -> SessionRecord:
    if state.container is None or state.server is None:
        return record
    to = server_endpoint(runtime, state.container, state.server)
    forward = local_ports.hold(link, record.name, to, context.progress, undo)
    wait_for_answer(link, forward)
    refuse_open(link, forward, allowed=False)
    return replace(record, local_port=forward.local_port, forwarded=True)


def _found(link: Link, typed: str) -> tuple[Runtime, Container, Survey] | None:
    unknown: JlrError | None = None
    runtimes: list[Runtime] = [*OF_PROCESSES, on_nodes()["none"], on_nodes()["apptainer"]]
    try:
        runtimes.insert(0, Containers(engine_if_any(link)))
    except EngineSilent as silent:
        unknown = silent
    for runtime in runtimes:
        try:
            runtime.check_name(typed)
            for _, state in candidates(link, runtime, typed):
                container = state.container
                known = container and sessions.of_container(link.name, container.id)
                if container and (state.server or container.is_session or known):
                    return runtime, container, state
        except Usage:
            continue
        except (Authentication, Unreachable):
            raise
        except JlrError as failure:  # no engine, or no permission
            unknown = unknown or failure
    if unknown is not None:
        raise unknown
    return None


def candidates(host: Host, runtime: Runtime, typed: str) -> Iterator[tuple[str, Survey]]:
    """Yield the names that `typed` may stand for, the likeliest first, each with its survey."""
    names: tuple[str, ...] = (typed,)
    if runtime.has_containers:
        rule = str(settings.load().chosen(host.name, {}).get("name", naming.NAME))
        names = naming.names(StartRequest(host.name, typed, rule), host)
    first = survey(host, runtime, names[0], typed=typed)
    return with_others(names, first, lambda name: survey(host, runtime, name))


def running(
    host: Host, runtime: Runtime, typed: str, known: SessionRecord | None = None, *, as_shared: bool
) -> Container | None:
    """Return the container of a typed name, or of a session that is `known`; `None` for none.

    If it is another user's, or does not run (see `refuse_halted`), raise `JlrError`.
    """
    looks = candidates(host, runtime, typed)
    if known is not None:
        looks = iter([(known.name, survey(host, runtime, known.name))])
    for name, look in looks:
        if look.container is not None:
            naming.refuse_other_owner(host.name, name, look.owner, agreed=as_shared)
            return refuse_halted(host.name, name, runtime, look.container)
    return None


def with_others(
    names: tuple[str, ...], first: Survey, look: Callable[[str], Survey]
) -> Iterator[tuple[str, Survey]]:
    """Yield each name with its survey, the likeliest first.

    Last come the containers that were typed so on another laptop, with another naming template.
    """
    yield names[0], first
    yield from ((name, look(name)) for name in names[1:])
    for name in first.called:
        state = look(name)
        if state.container and state.container.is_session:
            yield name, state
