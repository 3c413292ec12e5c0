"""The mounts of a link: the socket for sshfs, and their wait for the host while it is away."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jlremote.errors import JlrError
from jlremote.link.connection.supervisor import Supervisor
from jlremote.mounts.connector import NAME_BYTES, WELCOME
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.forward.sftp_streams import SftpStream

log = logging.getLogger(__name__)

HANDOVER_SECONDS = 5.0
# Programs do not notice a reconnect that takes no longer. It counts from the first request that
# waits: sshfs connects for one request at a time, and each would wait for those before it.
GRACE_SECONDS = 8.0
_BACKLOG = 64
_NO_DESCRIPTORS_PAUSE = 0.2


class UnixListener:
    """Listens at `path` until it is closed; `serve` gets each client in a thread, and closes it.

    Raise `OSError` if the socket cannot be made.
    """

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
                log.info("no sshfs was accepted: %r", error)
                time.sleep(_NO_DESCRIPTORS_PAUSE)


@dataclass(eq=False)
class Mounts:
    """All mounts of a link, by name; sshfs hands its own socket over at the socket `address`.

    The name of that socket outlives the link: an sshfs that outlives the link finds the next one.
    `mounts.connector` is the other side.
    """

    supervisor: Supervisor
    address: Path
    _loop: EventLoop = field(default_factory=EventLoop)  # of all streams
    _listener: UnixListener | None = None  # from the first mount on
    _lock: threading.Lock = field(default_factory=threading.Lock)
    # Each with the name of its mount.
    _streams: dict[SftpStream, str] = field(default_factory=dict)
    _failures: dict[str, str | None] = field(default_factory=dict)
    _roots: dict[str, str] = field(default_factory=dict)
    _away_since: float | None = None

    def __len__(self) -> int:
        return len(self._failures)

    def add(self, name: str, root: str) -> None:
        """Admit the sshfs of that name, which shows the host's folder `root`; may be repeated.

        Raise `JlrError` if the socket cannot be made.
        """
        with self._lock:
            if self._listener is None and sys.platform != "win32":  # see `admit`
                try:
                    self._listener = UnixListener(self.address, self._receive)
                except OSError as error:
                    raise JlrError(f"cannot listen at `{self.address}`: {error}") from error
            self._failures.setdefault(name, None)
            self._roots[name] = root

    def remove(self, name: str) -> bool:
        """Stop admitting a mount and close its streams; return whether there was one."""
        with self._lock:
            was_served = name in self._failures
            self._failures.pop(name, None)
            if not self._failures:
                self._close()
        self._abort(name)
        return was_served

    def came_up(self) -> None:
        """Note that the host is connected: the next break has a grace of its own."""
        self._away_since = None

    def stop(self) -> None:
        self._close()
        for name in set(self._streams.values()):
            self._abort(name)
        self._loop.end_thread()

    def to_json(self) -> list[dict[str, Any]]:
        """Return all mounts for `status`: name, whether SFTP is open, and why it was refused."""
        with self._lock:
            return [
                {"name": name, "connected": name in self._streams.values(), "failure": failure}
                for name, failure in self._failures.items()
            ]

    def _close(self) -> None:
        """Stop listening, so that sshfs is refused at once."""
        if self._listener is not None:
            self._listener.close()
        self._listener = None

    def _receive(self, visitor: socket.socket) -> None:
        try:
            with visitor:
                visitor.settimeout(HANDOVER_SECONDS)
                visitor.sendall(WELCOME)
                name, descriptors, _, _ = socket.recv_fds(visitor, NAME_BYTES, 1)
                local = socket.socket(fileno=descriptors[0])
        except (OSError, IndexError) as error:
            log.info("an sshfs did not hand its socket over: %s", error)
            return
        self.admit(name.decode("ascii", "replace"), local)

    def admit(self, name: str, local: socket.socket) -> None:
        """Serve an sshfs, or close its socket, which fails its program's request at once.

        On Windows its connector asks for that as a command does.
        """
        if name not in self._failures:
            local.close()
            return
        try:
            connection = self.supervisor.wait(self._patience())
        except JlrError:  # the link's state tells why
            local.close()
            return
        self._away_since = None
        self._failed(name, None)

        def ended(reason: str | None) -> None:
            with self._lock:
                del self._streams[stream]
            if reason is not None:
                self._failed(name, reason)

        with self._lock:  # `ended` must not run before the stream is recorded
            self._loop.start_thread("sftp")
            stream = SftpStream(connection, local, self._roots[name], self._loop, ended)
            self._streams[stream] = name
        if name not in self._failures:  # removed meanwhile
            self._abort(name)

    def _abort(self, name: str) -> None:
        with self._lock:
            streams = [stream for stream, of in self._streams.items() if of == name]
        for stream in streams:
            stream.abort()

    def _patience(self) -> float:
        now = time.monotonic()
        self._away_since = self._away_since or now
        return max(0.0, self._away_since + GRACE_SECONDS - now)

    def _failed(self, name: str, reason: str | None) -> None:
        with self._lock:
            if name in self._failures:
                self._failures[name] = reason
