"""`jlr logs`: the log of a session's Jupyter server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jlremote.errors import NotFound, Usage
from jlremote.hosts import halted
from jlremote.hosts.context import Context
from jlremote.hosts.links import link_of
from jlremote.hosts.requests import LogRequest
from jlremote.jupyter import scripts
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.shell_text import command_line, until_hang_up
from jlremote.place.host.sudo import endable
from jlremote.place.runtimes.docker.docker_commands import logs_argv
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.table import runtime_of
from jlremote.selection import session_selection
from jlremote.text import printable

# As `[I 2026-01-31 12:00:00.123 ServerApp]`, in the server's own zone.
_WRITTEN = re.compile(r"\[\w (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


def log(selector: str | None, wanted: LogRequest, context: Context) -> Iterator[str]:
    """Yield the log of a session's server as it comes, without control characters.

    A server that jlr did not launch writes to its container's log, so that one is shown, as with
    `container`. Begin with the last `tail` lines, and `follow` with later ones. If there is no such
    session, log or running container, raise `NotFound`, for one without container `Usage`.
    """
    record = session_selection.chosen(selector, context, or_job=True)
    runtime = runtime_of(record)
    if wanted.container and not runtime.has_containers:
        hint = "without `--container` you see the log of its Jupyter"
        raise Usage(f"`{record.selector}` has no container", hint=hint)
    host = link_of(record, context)
    if wanted.container and halted.container_of(host, runtime, record) is None:
        halted.running(record, runtime, None)
    with host.stream(_script(runtime, record, wanted)) as output:
        for text in output.text() if wanted.since is None else _later(output.text()):
            yield printable(text)
    if output.status not in (0, None):
        halted.check(host, record)
        hint = "`jlr start` may never have launched its server"
        if runtime.in_jobs:
            hint = f"`jlr list {record.selector}` tells whether its job has begun"
        raise NotFound(f"there is no log of `{record.selector}`", hint=hint)


def _script(runtime: Runtime, record: SessionRecord, wanted: LogRequest) -> str:
    name, lines, follow, since = record.name, wanted.tail, wanted.follow, wanted.since
    show = scripts.show_log(runtime, name, lines=lines, follow=follow, since=since)
    if not runtime.has_containers:  # a job's is in the home, also when its node is away
        return command_line(("sh", "-c", show))
    own = runtime.beside(name, show)
    others = endable(
        logs_argv(runtime.required_engine, record.engine_name, lines, follow=follow, since=since)
    )
    if wanted.container:
        return until_hang_up(f"{others} 2>&1")
    # The first command ends with status 6 if there is no such file. What the engine says of a
    # container that does not run is told by `halted`.
    own = f"{own} 2>/dev/null\nstatus=$?\n[ $status = 6 ] || exit $status"
    return f"{own}\n{until_hang_up(f'{others} 2>&1')}"


def _later(pieces: Iterable[str]) -> Iterator[str]:
    lines = _lines(pieces)
    first = next(lines, "")
    if first.startswith(scripts.MOMENT):
        moment = first[len(scripts.MOMENT) :].strip()
        written = ((line, _WRITTEN.match(line)) for line in lines)
        first = next((line for line, at in written if at and at[1] >= moment), "")
    yield first
    yield from lines


def _lines(pieces: Iterable[str]) -> Iterator[str]:
    rest = ""
    for piece in pieces:
        *whole, rest = f"{rest}{piece}".split("\n")
        yield from (f"{line}\n" for line in whole)
    yield rest
