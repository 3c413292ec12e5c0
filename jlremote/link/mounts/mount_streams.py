"""The SFTP streams of a link's mounts, and the watch over their connection.

sshfs has no time limits: if an answer is lost, the program that reads the file waits for ever.
So while a mount has a stream, its connection is probed whenever the host was quiet for a while, and
closed if the host does not answer. A program waits at most `QUIET_SECONDS` + `PROBE_SECONDS`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from jlremote.errors import JlrError, LinkLost
from jlremote.link.lasting import keep_going
from jlremote.ssh.contract import Connection
from jlremote.ssh.forward.sftp import Ended, SftpStream, SftpStreams

log = logging.getLogger(__name__)

QUIET_SECONDS = 12.0
PROBE_SECONDS = 20.0
TICK_SECONDS = 1.0


class MountStreams:
    """The open streams, with the names of their mounts.

    `lost` is called with a connection that did not answer.
    """

    def __init__(self, opener: SftpStreams, lost: Callable[[Connection, JlrError], None]) -> None:
        self._opener = opener
        self._lost = lost
        self._lock = threading.Lock()
        self._streams: dict[SftpStream, str] = {}
        self._alive: tuple[Connection | None, float] = (None, 0.0)
        self._watching = False

    def open(
        self, name: str, connection: Connection, local: Any, root: str, refused: Ended
    ) -> None:
        """Open another stream for a mount of the host's folder `root`.

        `refused` is called with the reason for a refusal.
        """

        def ended(reason: str | None) -> None:
            with self._lock:
                del self._streams[stream]
            if reason is not None:
                refused(reason)

        with self._lock:  # `ended` must not run before the stream is recorded
            stream = self._opener.open(connection, local, root, ended)
            self._streams[stream] = name
            if not self._watching:
                self._watching = True
                threading.Thread(
                    target=self._keep_watching, name="mount-watch", daemon=True
                ).start()

    def abort(self, name: str) -> None:
        for stream in self._all():
            if self._streams.get(stream) == name:
                stream.abort()

    def connected(self, name: str) -> bool:
        return name in self._streams.values()

    def stop(self) -> None:
        for stream in self._all():
            stream.abort()
        self._opener.stop()

    def _all(self) -> tuple[SftpStream, ...]:
        with self._lock:
            return tuple(self._streams)

    def _keep_watching(self) -> None:
        keep_going("mount-watch", self._watch)

    def _watch(self) -> None:
        """Probe the connections as long as there are streams."""
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
            # The probe may wait behind an upload that the host still accepts.
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
