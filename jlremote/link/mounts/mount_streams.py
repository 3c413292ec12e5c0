"""The SFTP streams of a link's mounts, and the watch over what they go through.

sshfs knows no time limits: a request whose answer is lost waits for ever, and the program with it.
So while a mount has a stream its connection is asked for a sign of life whenever the host was quiet
for a while, and closed when there is none. `QUIET_SECONDS` + `PROBE_SECONDS` is how long a program
can wait for a host that vanished.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from jlremote.errors import JlrError, LinkLost
from jlremote.ssh.contract import Connection

log = logging.getLogger(__name__)

QUIET_SECONDS = 12.0
PROBE_SECONDS = 20.0
TICK_SECONDS = 1.0

Ended = Callable[[str | None], None]


class Stream(Protocol):
    """An SFTP stream; see `ssh.sftp.SftpStream`."""

    connection: Connection
    heard: float

    def abort(self) -> None:
        """Close it at once."""
        ...


class Opener(Protocol):
    """Opens SFTP streams; see `ssh.sftp.SftpStreams`."""

    def open(self, connection: Connection, local: Any, ended: Ended) -> Stream:
        """Join a local socket with a new SFTP server on the host."""
        ...

    def stop(self) -> None:
        """End what serves them."""
        ...


class MountStreams:
    """What is open, by the mount's name.

    Args:
        opener: opens a stream.
        lost: is told of a connection that gave no sign of life.
    """

    def __init__(self, opener: Opener, lost: Callable[[Connection, JlrError], None]) -> None:
        self._opener = opener
        self._lost = lost
        self._lock = threading.Lock()
        self._streams: dict[Stream, str] = {}
        self._alive: tuple[Connection | None, float] = (None, 0.0)
        self._watching = False

    def open(self, name: str, connection: Connection, local: Any, refused: Ended) -> None:
        """Give a mount another stream; `refused` is told why if the host grants none."""

        def ended(reason: str | None) -> None:
            with self._lock:
                del self._streams[stream]
            if reason is not None:
                refused(reason)

        with self._lock:  # `ended` waits until the stream is noted
            stream = self._opener.open(connection, local, ended)
            self._streams[stream] = name
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="mount-watch", daemon=True).start()

    def abort(self, name: str) -> None:
        """Close what a mount has open."""
        for stream in self._all():
            if self._streams.get(stream) == name:
                stream.abort()

    def connected(self, name: str) -> bool:
        """Return whether a mount has a stream."""
        return name in self._streams.values()

    def stop(self) -> None:
        """Close everything."""
        for stream in self._all():
            stream.abort()
        self._opener.stop()

    def _all(self) -> tuple[Stream, ...]:
        with self._lock:
            return tuple(self._streams)

    def _watch(self) -> None:
        """Look after the connections for as long as there are streams."""
        while True:
            time.sleep(TICK_SECONDS)
            with self._lock:
                self._watching = bool(self._streams)
                if not self._watching:
                    return
            for connection in {stream.connection for stream in self._all()}:
                self._look_after(connection)

    def _look_after(self, connection: Connection) -> None:
        if connection.wait_closed(0):
            self._abort_all(connection)
            return
        if time.monotonic() - self._last_sign(connection) < QUIET_SECONDS:
            return
        asked = time.monotonic()
        try:
            connection.probe(PROBE_SECONDS)
        except LinkLost as silent:
            # The question may stand in line behind an upload that the host still takes.
            if self._last_sign(connection) < asked:
                self._lost(connection, silent)
                self._abort_all(connection)
        else:
            self._alive = (connection, time.monotonic())

    def _last_sign(self, connection: Connection) -> float:
        probed, when = self._alive
        heard = [stream.heard for stream in self._all() if stream.connection is connection]
        return max([*heard, when if probed is connection else 0.0])

    def _abort_all(self, connection: Connection) -> None:
        for stream in self._all():
            if stream.connection is connection:
                stream.abort()
