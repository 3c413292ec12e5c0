"""Desktop notices of long cells and dead kernels, from the recorder's records."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from jlremote.errors import JlrError
from jlremote.jupyter.scripts import session_directory
from jlremote.link.connection.backoff import keep_going
from jlremote.link.wire.protocol import bytes_of
from jlremote.output import recorded_files
from jlremote.output.recorded_files import Reader, Record
from jlremote.place.runtimes.place import Place
from jlremote.ssh.connection import Connection
from jlremote.ssh.interfaces import Stream
from jlremote.times import in_words

log = logging.getLogger(__name__)

LONG_SECONDS = 60
PAUSE_SECONDS = 15.0
CONNECTION_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class CellNotices:
    """The sessions of one host with notices of long cells and dead kernels.

    `connected` returns a connection, or raises `JlrError` if there is none after some seconds;
    `place_of` returns where a session runs, `None` once it is no longer forwarded.
    """

    connected: Callable[[float], Connection]
    place_of: Callable[[str], Place | None]
    show: Callable[[str, str], object]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sessions: set[str] = field(default_factory=set)
    _read_now: set[str] = field(default_factory=set)  # with a thread, which may outlast the wish
    _ended: threading.Event = field(default_factory=threading.Event)

    def set(self, session: str, *, wanted: bool) -> None:
        """Turn the notices of a session on or off; repeating it is harmless."""
        with self._lock:
            (self._sessions.add if wanted else self._sessions.discard)(session)
            new = wanted and session not in self._read_now
            if new:
                self._read_now.add(session)
        if new:
            threading.Thread(target=self._keep_reading, args=(session,), daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def _wanted(self, session: str) -> bool:
        return session in self._sessions and not self._ended.is_set()

    def _keep_reading(self, session: str) -> None:
        news = CellNews()
        keep_going(
            f"cells of {session}",
            lambda: self._read(session, news),
            wanted=lambda: self._wanted(session),
        )
        with self._lock:
            self._read_now.discard(session)

    def _read(self, session: str, news: CellNews) -> None:
        """Read while the session is forwarded, from where the last connection ended."""
        while self._wanted(session):
            place = self.place_of(session)
            if place is None:
                self.set(session, wanted=False)
                return
            try:
                connection = self.connected(CONNECTION_SECONDS)
                script = bytes_of(_script(place))
                connection.run_preemptible(script, self._reader(session, news))
            except JlrError as failure:
                log.info("the cells of %s are not read: %s", session, failure)
            self._ended.wait(PAUSE_SECONDS)

    def _reader(self, session: str, news: CellNews) -> Callable[[Stream, bytes], None]:
        reader = Reader()

        def take(stream: Stream, data: bytes) -> None:
            if stream == "stderr":
                log.info("the cells of %s: %r", session, data[:1000])
            for record in reader.take(data) if stream == "stdout" else ():
                if (text := news.take(record)) and self._wanted(session):
                    self.show(session, text)

        return take


def _script(place: Place) -> str:
    script = recorded_files.news(session_directory(place.runtime, place.name))
    return f"{place.runtime.beside(place.name, script)}\n"


class CellNews:
    """The records of a session as news; those of the first look are known already."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str | None], tuple[float, object]] = {}
        self._latest = 0.0
        self._looked = False

    def take(self, record: Record | None) -> str | None:
        """Return the notice of a record if it is news; `None` marks the end of a look."""
        if record is None:
            self._looked = True
            return None
        if record.time <= self._latest and self._looked:
            return None  # it was read before a loss of the connection
        self._latest = max(self._latest, record.time)
        text = self._text(record)
        return text if self._looked else None

    def _text(self, record: Record) -> str | None:
        notebook = record.notebook or "a kernel without a notebook"
        run = record.kernel, record.request
        if record.kind == "code":
            self._begun[run] = record.time, record.content.get("execution_count")
        elif record.kind == "end" and run in self._begun:
            since, number = self._begun.pop(run)
            if record.time - since >= LONG_SECONDS:
                cell = f"cell [{number}]" if isinstance(number, int) else "a cell"
                failed = " with an error" if record.text("status") == "error" else ""
                took = in_words(int(record.time - since))
                return f"{cell} of {notebook} has ended{failed} after {took}"
        elif record.kind == "kernel" and record.text("state") == "died":
            return f"the kernel of {notebook} has died"
        return None
