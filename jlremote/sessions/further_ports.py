"""`jlr forward`: further ports of a session, typed ones or what its programs begin to listen on."""

from __future__ import annotations

import shlex
import socket
import time
from collections import Counter
from collections.abc import Generator, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace

from jlremote.errors import Authentication, Busy, JlrError, NotFound, Unreachable, Usage
from jlremote.forwards import listening
from jlremote.forwards.address import PortReport, report, reports
from jlremote.forwards.local_ports import check_free, hold, host_port
from jlremote.hosts import halted
from jlremote.hosts.context import Context
from jlremote.hosts.links import ASKS_NOTHING, Unreached, connect, link_of, status_of, undisturbed
from jlremote.hosts.rollback import undone_on_failure
from jlremote.jobs.follow import groups
from jlremote.jupyter.endpoint import Endpoint
from jlremote.jupyter.survey import survey
from jlremote.laptop import paths, sessions
from jlremote.laptop.record_files import file_name
from jlremote.laptop.sessions import PortRecord, SessionRecord
from jlremote.laptop.settings import settings
from jlremote.place.host.addresses import LOCALHOST
from jlremote.place.runtimes.place import of_container
from jlremote.place.runtimes.table import runtime_of
from jlremote.questions import NeverAsks
from jlremote.selection import destruction, session_selection

# Of what `--auto` finds, as a container may open thousands: lines, and pages, in a minute.
MOST, MOST_PAGES = 20, 3
_ENDING_SECONDS, _PAUSE_SECONDS = 2.0, 3.0  # until another one has ended; after a loss
Followed = Generator[tuple[PortReport, bool]]


def add(
    selector: str | None,
    port: int,
    context: Context,
    *,
    exact: int | None = None,
    on_host: bool = False,
    auto: bool = False,
) -> PortReport:
    """Forward a port of a session's container, to the same local port if that is free.

    With `on_host` it is a port of the host itself. With `exact`, only that local port will do, or
    raise `Busy`. A program need not listen on it yet: the report's state tells. If the session does
    not run, raise `NotFound` or another `JlrError`.
    """
    record = session_selection.chosen(selector, context)
    if not record.forwarded:
        unknown = f"the session `{record.selector}` does not run"
        link = link_of(record, replace(context, asker=ASKS_NOTHING))
        if not isinstance(status_of(link, undisturbed), Unreached):
            halted.check(link, record)
        raise NotFound(unknown, hint=halted.again(record))
    link, runtime = link_of(record, context), runtime_of(record)
    step = context.progress.step(f"Look for port {port} of {link.name if on_host else record.name}")
    try:
        if exact is not None and exact not in record.local_ports:
            check_free(exact, record.host, record.name)
        with undone_on_failure() as undo:
            with step:
                if on_host:
                    to = host_port(link, port)
                else:
                    found = survey(link, runtime, record.name)
                    container = halted.running(record, runtime, found.container)
                    python = found.server.python if found.server else ""
                    to = Endpoint(of_container(runtime, container), port, python=python)
                held = hold(link, record.name, to, context.progress, undo, exact=exact)
            known = PortRecord(port, held.local_port, on_host, auto)
            sessions.save(_as_it_is(record).with_port(known))  # it may have been stopped meanwhile
    except Busy as busy:
        whole = f"jlr forward {record.selector} {port}{' --host' if on_host else ''}"
        busy.hint = f"`{whole}` takes a free one"
        raise
    return report(record, known, held)


def _as_it_is(record: SessionRecord) -> SessionRecord:
    """Return the present record of a session; `NotFound` if that was stopped since."""
    now = sessions.find(record.host, record.name)
    if now is None or not now.forwarded:
        raise NotFound("the session was stopped", hint=halted.again(record))
    return now


def listed(selector: str | None, context: Context) -> list[PortReport]:
    """Return the forwarded ports of a session (else `NotFound`), each checked just now."""
    record = session_selection.chosen(selector, context)
    if not record.forwarded or not record.ports:
        return []
    link = link_of(record, context)
    status = status_of(link)
    if isinstance(status, Unreached):
        return list(reports(record, status))
    return [report(record, port, link.check(record.name, port.port)) for port in record.ports]


def remove(selector: str | None, port: int, context: Context) -> None:
    """Stop forwarding a port; raise `NotFound`, or `Usage` if several sessions have it."""
    if selector is None:
        having = [r for r in sessions.load_all() if port in {known.port for known in r.ports}]
        if len(having) > 1:
            commands = [f"jlr forward {shlex.quote(r.selector)} --remove {port}" for r in having]
            raise destruction.unnamed("--remove", len(having), commands)
    record = session_selection.chosen(selector, context)
    if port not in {known.port for known in record.ports}:
        hint = f"`jlr forward {record.selector}` lists the forwarded ports"
        raise NotFound(f"port {port} of `{record.selector}` is not forwarded", hint=hint)
    link_of(record, context).unforward(record.name, port)
    if now := sessions.find(record.host, record.name):
        sessions.save(replace(now, ports=tuple(each for each in now.ports if each.port != port)))


def follow(selector: str | None, context: Context, *, pages: bool) -> Followed:
    """Forward what begins to listen in a session; closing this ends these forwards.

    Yield each port that is forwarded, has ended (`closed`) or is not forwarded; again, with true,
    where its page is to be opened. Without `pages` no program is sent anything.
    """
    from filelock import FileLock, Timeout

    record = session_selection.chosen(selector, context)
    link, name = link_of(record, context), file_name("forward", record.host, record.name)
    lock = FileLock(paths.runtime_directory() / name, mode=0o600)
    try:
        lock.acquire(timeout=_ENDING_SECONDS)
    except Timeout:
        shown = f"`jlr list {record.selector}` shows its ports"
        raise Busy(f"`{record.selector}` is followed already", hint=shown) from None
    following = _Following(record, replace(context, asker=replace(ASKS_NOTHING, obeys=True)), pages)
    try:
        if not (isinstance(context.asker, NeverAsks) and link.disconnected):
            connect(link, context)
        while True:
            following.check()
            with suppress(Unreachable, Busy, Authentication):  # it goes on once that is over
                undisturbed(link_of(record, following.context))
                yield from following.once()
            time.sleep(_PAUSE_SECONDS)
    finally:
        following.end(set(following.told))
        lock.release()


@dataclass
class _Following:
    """The ports of a session that were told; those with a local port were forwarded for it."""

    record: SessionRecord
    context: Context
    pages: bool
    told: listening.Ports = field(default_factory=dict)
    _since: float = field(default_factory=time.time)
    _counts: Counter[tuple[str, float]] = field(default_factory=Counter)  # by minute

    def __post_init__(self) -> None:
        self._was_set = self._is_set()
        mine = (port for port in self.record.ports if port.auto)  # of one that was killed
        self.told |= {port.port: PortReport(port.port, port.local_port, "up") for port in mine}

    def check(self) -> None:
        """Read the record again, and check that the session is still to be followed."""
        self.record, last = _as_it_is(self.record), sessions.latest_stop()
        key = (self.record.host, self.record.name)
        if last and (last.host, last.name) == key and last.stopped > self._since:
            self.told, self._since = {}, time.time()  # it was started again at once
        if link_of(self.record, self.context).disconnected:
            raise JlrError("`jlr disconnect` has ended the connection")
        with suppress(Usage):  # a person just writes the file
            if self._was_set and not self._is_set():
                raise JlrError("`forward-auto` is not set any more")

    def _is_set(self) -> bool:
        return bool(settings.load().chosen(self.record.host, {}).get("forward-auto"))

    def once(self) -> Followed:
        """Follow until the script there ends, as it does with its container."""
        link, seen = link_of(self.record, self.context), False
        for printed in groups(link, listening.script(link, self.record, follow=True)):
            self.check()
            now = listening.read(printed, link, self.record, self.told)
            if now is not None:  # else it is cut, or empty
                seen = True
                yield from self._take(now)
        if not seen:
            raise JlrError(f"cannot see what listens in `{self.record.selector}`")

    def end(self, ports: Set[int]) -> list[PortReport]:
        """Remove the forwards of ports, and return those that had one."""
        ended = [told for told in map(self.told.pop, ports) if told.local_port]
        for each in ended:
            with suppress(JlrError):  # a person may have removed it
                remove(self.record.selector, each.port, self.context)
        return ended

    def _take(self, now: listening.Ports) -> Followed:
        for gone in self.end(self.told.keys() - now.keys()):
            yield replace(gone, state="closed", detail="it has ended"), False
        for port in sorted(now.keys() - self.told.keys()):
            own = sum(told.local_port is not None for told in self.told.values())
            if own < MOST and self._allowed("lines", MOST):
                told = self.told[port] = self._forwarded(now[port])
                yield told, False
                if self.pages and _has_page(told) and self._allowed("pages", MOST_PAGES):
                    yield told, True
            elif self._allowed("full", 1, once=True):
                yield replace(now[port], detail=f"no more than {MOST} are followed at once"), False

    def _allowed(self, what: str, most: int, *, once: bool = False) -> bool:
        """Return whether one more is not too many for this minute, and count it."""
        minute = 0.0 if once else time.monotonic() // 60
        self._counts[what, minute] += 1
        return self._counts[what, minute] <= most

    def _forwarded(self, port: PortReport) -> PortReport:
        if port.detail or any(known.port == port.port for known in self.record.ports):
            return replace(port, detail=port.detail or "it is forwarded already")
        made = add(self.record.selector, port.port, self.context, auto=True)
        if made.state == "up":
            return replace(made, program=port.program, since=port.since)
        remove(self.record.selector, port.port, self.context)
        return replace(port, detail=made.detail)


def _has_page(port: PortReport) -> bool:
    """Return whether a forwarded port answers with a page under its name in a browser."""
    name, local = port.hostname, port.local_port or 0
    with suppress(OSError), socket.create_connection((LOCALHOST, local), timeout=10) as program:
        program.sendall(f"GET / HTTP/1.1\r\nHost: {name}:{local}\r\n\r\n".encode())
        return program.recv(64)[:10] in (b"HTTP/1.0 2", b"HTTP/1.1 2", b"HTTP/1.0 3", b"HTTP/1.1 3")
    return False
