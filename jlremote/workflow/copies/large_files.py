"""A large file as one stream: `cat` runs there, and the link reads or writes this machine's file.

SFTP asks for each piece, and each piece goes through this process. One command more costs less than
that from some size on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from jlremote.errors import Busy
from jlremote.link.client.link import ShellCommand
from jlremote.link.wire.own_streams import OwnStreams
from jlremote.workflow.session.shell import ShellPlace

LARGE = 32 << 20
_TELL_SECONDS = 0.1

Moved = Callable[[int], None]


class LargeFiles:
    """Streams of whole files to a place, and from it; SFTP has to copy what is missing then."""

    def __init__(self, place: ShellPlace) -> None:
        self._place = place

    def send(self, source: int, remote: str, moved: Moved) -> None:
        """Write the open file `source` to a path there, as far as that is possible."""
        with Path(os.devnull).open("r+b") as null:
            self._run(
                'exec cat >"$1"', remote, (source, null.fileno(), null.fileno()), source, moved
            )

    def fetch(self, remote: str, target: int, moved: Moved) -> None:
        """Write what is at a path there to the open file `target`, as far as that is possible.

        Raises:
            JlrError: it cannot be written here.
        """
        with Path(os.devnull).open("r+b") as null:
            self._run(
                'exec cat <"$1"', remote, (null.fileno(), target, null.fileno()), target, moved
            )

    def _run(
        self, script: str, remote: str, descriptors: tuple[int, int, int], file: int, moved: Moved
    ) -> None:
        streams = OwnStreams.opened(*descriptors)
        if streams is None:
            return
        command = ShellCommand(("sh", "-c", script, "sh", remote), copies=True)
        with (
            suppress(Busy),  # it needs a session of its own
            closing(streams),
            closing(_Position(file, moved)),
            self._place.host.shell(
                self._place.served, command, None, checked=True, streams=streams
            ) as process,
        ):
            process.wait_connected()
            process.wait()


class _Position:
    """Tells how far an open file is read or written: the link has the same position in it."""

    def __init__(self, file: int, moved: Moved) -> None:
        self._file = file
        self._moved = moved
        self._at = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Tell the rest."""
        self._over.set()
        self._thread.join()
        self._look()

    def _tell(self) -> None:
        while not self._over.wait(_TELL_SECONDS):
            self._look()

    def _look(self) -> None:
        at = os.lseek(self._file, 0, os.SEEK_CUR)
        self._moved(at - self._at)
        self._at = at
