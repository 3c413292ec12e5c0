"""Where commands find the link: its lock, its key and its socket, for as long as it lives."""

from __future__ import annotations

import logging
import multiprocessing.connection as sockets
import os
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from jlremote.errors import JlrError
from jlremote.link.wire.files import LinkFiles
from jlremote.storage import paths

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
_BACKLOG = 128

Identity = tuple[int, int]


class Entrance:
    """The files of a link that runs.

    Others tidy up where they are: `/tmp` after some days, `/run/user` at the last logout. Then the
    link would go on with its ports, and no command could find it.

    Attributes:
        secret: by which commands and the link know each other.
    """

    def __init__(self, files: LinkFiles) -> None:
        self.secret = secrets.token_bytes(32)
        self._files = files
        self._locks: list[FileLock] = []
        self._claimed: Identity | None = None

    def claim(self, seconds: float) -> bool:
        """Take the lock that makes the link the only one; return whether it is ours."""
        lock = FileLock(self._files.lock, mode=0o600)
        try:
            lock.acquire(timeout=seconds)
        except Timeout:
            return False
        self._locks.append(lock)
        self._claimed = _identity(self._files.lock)
        return True

    def open(self) -> sockets.Listener:
        """Return what listens for commands; the lock must be ours."""
        paths.write_whole(self._files.key, self.secret)
        if os.name != "nt":
            Path(self._files.address).unlink(missing_ok=True)  # left by a link that was killed
        return sockets.Listener(self._files.address, backlog=_BACKLOG)

    def keep_open(
        self, listen: Callable[[sockets.Listener], None], wanted: Callable[[], bool]
    ) -> None:
        """Open it again whenever its files are gone; end the process where another has opened."""
        threading.Thread(target=self._keep_open, args=(listen, wanted), daemon=True).start()

    def _keep_open(
        self, listen: Callable[[sockets.Listener], None], wanted: Callable[[], bool]
    ) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            if self._is_open() or not wanted():
                continue
            try:
                paths.private_directory(self._files.lock.parent)
                if _identity(self._files.lock) != self._claimed and not self.claim(0):
                    log.warning("another link has taken our place")
                    # An orderly end would remove that one's socket.
                    os._exit(0)
                listen(self.open())
            except (JlrError, OSError) as error:
                log.info("commands cannot find us: %s", error)
            else:
                log.warning("our files were gone and are there again")

    def _is_open(self) -> bool:
        there = self._files.key.exists() and (os.name == "nt" or Path(self._files.address).exists())
        return there and _identity(self._files.lock) == self._claimed

    def close(self) -> None:
        """Let the next link in."""
        self._files.key.unlink(missing_ok=True)
        for lock in self._locks:
            lock.release()


def _identity(path: Path) -> Identity | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
