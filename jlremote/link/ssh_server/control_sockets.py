"""The sockets at which OpenSSH's client finds the link as its `ControlPath`, one for each name."""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jlremote.laptop import known_names
from jlremote.link.ssh_server.control_client import ControlClient, Denied, Runs, SharedPlace
from jlremote.link.ssh_server.served_place import Connect, ServedPlace
from jlremote.ssh.interfaces import Connection

log = logging.getLogger(__name__)

_BACKLOG = 64
_NO_DESCRIPTORS_PAUSE = 0.2


@dataclass(frozen=True)
class _ControlSocket:
    listener: socket.socket
    path: Path
    inode: int
    shared: SharedPlace

    def close(self) -> None:
        """Stop listening, and remove the socket's file unless another one has its name by now."""
        with suppress(OSError):
            if self.path.stat().st_ino == self.inode:
                self.path.unlink()
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self.listener.close()


class ControlSockets:
    """All control sockets of a link; `gone` is called when a client has left."""

    def __init__(self, connect: Connect, runs: Runs, gone: Callable[[], None]) -> None:
        self._connect = connect
        self._runs = runs
        self._gone = gone
        self._lock = threading.Lock()
        self._listening: dict[str, _ControlSocket] = {}
        self._refused: set[str] = set()
        self._clients: dict[ControlClient, ServedPlace] = {}

    def __len__(self) -> int:
        return len(self._clients)

    @property
    def places(self) -> list[ServedPlace]:
        """The place of each client."""
        with self._lock:
            return list(self._clients.values())

    def listen(self, name: str, place: ServedPlace, connection: Connection) -> None:
        """Share the connection with each `ssh NAME` that only runs a command in that place.

        The place must be known to run, as that of a session with a forward is. A name whose clients
        wanted more is left alone from then on: the user's configuration has forwards for it, say.
        """
        path = known_names.control_socket(name)
        shared = SharedPlace(place, self._connect, self._runs)
        if path is None or name in self._refused or not shared.is_sure(connection):
            return
        self._forget(name)
        if sys.platform == "win32":
            raise NotImplementedError
        listener = socket.socket(socket.AF_UNIX)
        try:
            path.unlink(missing_ok=True)  # of a link that was killed
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(_BACKLOG)
            one = _ControlSocket(listener, path, path.stat().st_ino, shared)
        except OSError as error:
            log.info("ssh clients of `%s` cannot share the connection: %s", name, error)
            listener.close()
            return
        with self._lock:
            self._listening[name] = one
        threading.Thread(target=self._accept, args=(name, one), daemon=True).start()

    def end(self, session: str) -> None:
        """End the commands of a session, and forget its names: it was stopped."""
        self._end(lambda place: place.session == session, f"the session `{session}` was stopped")

    def stop(self) -> None:
        """End all."""
        self._end(lambda _: True, "the link has ended")

    def _end(self, wanted: Callable[[ServedPlace], bool], reason: str) -> None:
        for name, one in tuple(self._listening.items()):
            if wanted(one.shared.place):
                self._forget(name)
        for client, place in tuple(self._clients.items()):
            if wanted(place):
                client.end(reason)

    def _forget(self, name: str) -> None:
        with self._lock:
            one = self._listening.pop(name, None)
        if one is not None:
            one.close()

    def _accept(self, name: str, one: _ControlSocket) -> None:
        while self._listening.get(name) is one:
            try:
                client, _ = one.listener.accept()
            except OSError:  # it was closed, or no descriptor is left
                time.sleep(_NO_DESCRIPTORS_PAUSE)
                continue
            serve = threading.Thread(target=self._serve, args=(name, client, one), daemon=True)
            try:
                serve.start()
            except RuntimeError:  # no thread is left
                client.close()

    def _serve(self, name: str, client: socket.socket, one: _ControlSocket) -> None:
        try:
            is_ours = _is_ours(client)
        except OSError:  # it has left
            is_ours = False
        if not is_ours:
            client.close()
            return
        served = ControlClient(client, one.shared)
        with self._lock:
            self._clients[served] = one.shared.place
        try:
            served.serve()
        except Denied as denied:
            log.info("an ssh client of `%s` was refused: %s", name, denied)
            if denied.for_good:
                self._refused.add(name)
            self._forget(name)
        except (OSError, ValueError, struct.error) as error:
            log.info("an ssh client of `%s` has left: %r", name, error)
        except Exception:
            log.exception("an ssh client of `%s` was not served", name)
        finally:
            with self._lock:
                del self._clients[served]
            self._gone()


def _is_ours(client: socket.socket) -> bool:
    """Return whether a process of this user has connected; the folder lets no other one in."""
    if sys.platform != "linux":
        return True
    credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    return bool(user == os.getuid())
