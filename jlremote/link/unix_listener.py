"""A unix socket of the link, where each client is served in a thread of its own."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

_BACKLOG = 64
_NO_DESCRIPTORS_PAUSE = 0.2


class UnixListener:
    """Listens at `path` until it is closed; `serve` gets each client, and closes it.

    Raises:
        OSError: the socket cannot be made.
    """

    _path: Path
    _serve: Callable[[socket.socket], None]
    _listener: socket.socket
    _inode: int

    def __init__(self, path: Path, serve: Callable[[socket.socket], None]) -> None:
        self._path = path
        self._serve = serve
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            path.unlink(missing_ok=True)  # left by a link that was killed
            self._listener.bind(str(path))
            path.chmod(0o600)
            self._listener.listen(_BACKLOG)
            self._inode = path.stat().st_ino
        except OSError:
            self._listener.close()
            raise
        threading.Thread(target=self._accept, name=path.name, daemon=True).start()

    def close(self) -> None:
        """Stop listening, and remove the file unless another socket has its name by now."""
        with suppress(OSError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._listener.close()

    def _accept(self) -> None:
        while self._listener.fileno() >= 0:
            try:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()
            except (OSError, RuntimeError) as error:  # closed, or no descriptor or thread is left
                log.info("no client was accepted at `%s`: %r", self._path.name, error)
                time.sleep(_NO_DESCRIPTORS_PAUSE)
