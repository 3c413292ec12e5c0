"""The socket at which sshfs hands its own socket over; `mounts.connector` is the other side."""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.mounts.connector import NAME_BYTES, WELCOME

log = logging.getLogger(__name__)

HANDOVER_SECONDS = 5.0
BACKLOG = 64

Admit = Callable[[str, socket.socket], None]


class MountSocket:
    """A unix socket in the link's private folder, at which sshfs hands its own socket over.

    Its name outlives the link, so that an sshfs which outlives the link finds the next one.
    """

    def __init__(self, address: Path, admit: Admit) -> None:
        self._address = address
        self._admit = admit
        self._listener: socket.socket | None = None

    def open(self) -> None:
        """Listen, from the first mount on; repeating it is harmless.

        Raises:
            JlrError: the socket cannot be made.
        """
        if self._listener is not None:
            return
        if sys.platform == "win32":
            raise JlrError("cannot mount on Windows")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._address.unlink(missing_ok=True)  # left by a link that was killed
            listener.bind(str(self._address))
        except OSError as error:
            listener.close()
            raise JlrError(f"cannot listen at `{self._address}`: {error}") from error
        listener.listen(BACKLOG)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), name="mounts", daemon=True).start()

    def close(self) -> None:
        """Stop listening, so that sshfs is refused at once; repeating it is harmless."""
        if self._listener is not None:
            self._address.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
            self._listener.close()
        self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                visitor, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._receive, args=(visitor,), daemon=True).start()

    def _receive(self, visitor: socket.socket) -> None:
        if sys.platform == "win32":
            return  # `open` has refused
        try:
            with visitor:
                visitor.settimeout(HANDOVER_SECONDS)
                visitor.sendall(WELCOME)
                name, descriptors, _, _ = socket.recv_fds(visitor, NAME_BYTES, 1)
                local = socket.socket(fileno=descriptors[0])
        except (OSError, IndexError) as error:
            log.info("an sshfs did not hand its socket over: %s", error)
            return
        self._admit(name.decode("ascii", "replace"), local)
