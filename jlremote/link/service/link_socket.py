"""The lock, key and socket by which commands find a running link."""

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

from jlremote.laptop import paths
from jlremote.link.wire.link_files import LinkFiles

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
_BACKLOG = 128

Identity = tuple[int, int]


class LinkSocket:
    """The lock, key and socket of a running link.

    The system cleans their folder: `/tmp` after some days, `/run/user` at the last logout. Without
    new ones the link would keep its ports, and no command could find it. Its `secret` authenticates
    commands and the link to each other.
    """

    def __init__(self, files: LinkFiles) -> None:
        self.secret = secrets.token_bytes(32)
        self._files = files
        self._locks: list[FileLock] = []
        self._claimed: Identity | None = None

    def claim(self, seconds: float) -> bool:
        """Take the lock that makes this link the only one; return whether it is ours."""
        lock = FileLock(self._files.lock, mode=0o600)
        try:
            lock.acquire(timeout=seconds)
        except Timeout:
            return False
        self._locks.append(lock)
        self._claimed = _identity(self._files.lock)
        return True

    def open(self) -> sockets.Listener:
        """Return a new listener for commands; the lock must be ours."""
        paths.write_whole(self._files.key, self.secret)
        if os.name != "nt":
            self._files.socket.unlink(missing_ok=True)  # left by a link that was killed
        return sockets.Listener(self._files.address(self.secret), backlog=_BACKLOG)

    def keep_open(
        self, listen: Callable[[sockets.Listener], None], wanted: Callable[[], bool]
    ) -> None:
        """Make lost files again; end the process if another link has taken over."""

        def look() -> None:
            while True:
                time.sleep(LOOK_SECONDS)
                try:
                    if not self._is_open() and wanted():
                        self._make_again(listen)
                except Exception:
                    log.exception("commands cannot find this link")

        threading.Thread(target=look, daemon=True).start()

    def _make_again(self, listen: Callable[[sockets.Listener], None]) -> None:
        paths.private_directory(self._files.lock.parent)
        if _identity(self._files.lock) != self._claimed and not self.claim(0):
            log.warning("another link has taken over")
            # An orderly end would remove the other link's socket.
            os._exit(0)
        listen(self.open())
        log.warning("the files were gone; made them again")

    def _is_open(self) -> bool:
        exist = self._files.key.exists() and (os.name == "nt" or self._files.socket.exists())
        return exist and _identity(self._files.lock) == self._claimed

    def close(self) -> None:
        self._files.key.unlink(missing_ok=True)
        for lock in self._locks:
            lock.release()


def _identity(path: Path) -> Identity | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
