"""`jlr list --watch`: report a session again and again, without waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from jlremote.errors import JlrError
from jlremote.forwards import address
from jlremote.hosts.context import Context
from jlremote.hosts.links import ASKS_NOTHING, Unreached, link_of
from jlremote.jupyter.api import JupyterApi, Kernel
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import ForwardStatus, State
from jlremote.listing import listing, session_report
from jlremote.listing.session_report import SessionReport, of_unreached
from jlremote.place.host.addresses import LOCALHOST
from jlremote.selection import session_selection
from jlremote.times import utc

# The link answers over its local socket within milliseconds; a user notices a second.
PAUSE_SECONDS = 0.5
KERNELS_SECONDS = 2.0
ANSWER_SECONDS = 5.0
# The pauses between questions to a cluster's scheduler, as of all commands that wait for a job.
_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 60.0


def watch(selector: str | None, context: Context, later: Context) -> Iterator[SessionReport]:
    """Yield a session's report twice a second, for ever.

    Only the first one connects and may ask the user; the later ones, in the context `later`, only
    look, so that a link that was ended stays ended. A cluster is asked now and then while the
    session's job does not run. Raise `NotFound` if there is no such session.
    """
    record = session_selection.chosen(selector, context)
    selector, quiet = record.selector, replace(later, asker=ASKS_NOTHING)
    first = listing.report(selector, context)
    yield first
    view = SessionView(
        link_of(record, context), record, first, lambda: listing.report(selector, quiet)
    )
    while True:
        time.sleep(PAUSE_SECONDS)
        yield listing.with_mounts([view.now()], context)[0]


@dataclass
class SessionView:
    """The latest report of a session, which needs no waiting."""

    _link: Link
    _record: SessionRecord
    _told: SessionReport  # what the host said last
    _ask: Callable[[], SessionReport]
    _asked_at: float = 0.0
    _asking: bool = False
    _gone_since: str | None = None

    def __post_init__(self) -> None:
        self._kernels, self._access = self._told.kernels, self._told.access
        self._hostname = urlsplit(self._told.page or "").hostname or LOCALHOST
        self._was_up = self._told.state == State.UP
        self._told_at, self._pause = time.monotonic(), _FIRST_PAUSE_SECONDS

    def now(self) -> SessionReport:
        record = sessions.find(self._record.host, self._record.name)
        if record is None or not record.forwarded:
            return session_report.of_record(record or self._record, "stopped")
        try:
            status = self._link.status()
        except JlrError:
            return self._without_link(record)
        if status.state != State.UP:
            self._gone_since = None
            since = utc(status.since)
            return of_unreached(record, Unreached(status.state, since, status.detail))
        forward = status.forward(record.name)
        if self._told.job is not None:
            self._look_at_job(is_up=forward is not None and forward.state == State.UP)
            if self._told.state != State.UP:
                return self._told
        if forward is None:
            return self._without_link(record)
        self._gone_since = None
        report = session_report.of_forward(record, forward, self._access, self._hostname)
        ports = address.reports(record, status.further(record.name))
        report = replace(report, ports=ports, kernels=self._latest_kernels(forward))
        if (last := self._told).job is None:
            return report
        left = last.time_left and last.time_left - (time.monotonic() - self._told_at)
        report = replace(report, job=last.job, node=last.node, gpus=last.gpus)
        return session_report.with_time_left(report, left)

    def _look_at_job(self, *, is_up: bool) -> None:
        if is_up != self._was_up:
            self._pause = 0.0
        self._was_up = is_up
        runs = is_up and self._told.state == State.UP
        if (runs and self._pause) or time.monotonic() - self._told_at < self._pause:
            return
        with suppress(JlrError):
            told = self._ask()
            if told.state != self._told.state:
                self._pause = 0.0
            self._told, self._access = told, told.access
        self._told_at = time.monotonic()
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)

    def _without_link(self, record: SessionRecord) -> SessionReport:
        self._gone_since = self._gone_since or utc(time.time())
        again = f"jlr list {record.selector}"
        why = f"it is not forwarded any more; `{again}` forwards it again"
        return of_unreached(record, Unreached(State.DOWN, self._gone_since, why))

    def _latest_kernels(self, forward: ForwardStatus) -> tuple[Kernel, ...] | None:
        """Return the kernels as they were a moment ago: Jupyter may answer slowly."""
        if forward.state != State.UP:
            self._kernels = None
        elif not self._asking and time.monotonic() - self._asked_at > KERNELS_SECONDS:
            self._asking = True
            threading.Thread(target=self._ask_kernels, args=(forward,), daemon=True).start()
        return self._kernels

    def _ask_kernels(self, forward: ForwardStatus) -> None:
        kernels = None
        with suppress(JlrError):
            kernels = JupyterApi(forward.local_port, forward.server, ANSWER_SECONDS).kernels()
        self._kernels, self._asked_at, self._asking = kernels, time.monotonic(), False
