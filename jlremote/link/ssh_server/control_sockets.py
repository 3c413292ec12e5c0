"""The sockets at which OpenSSH's client finds the link as its `ControlPath`, one for each name."""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable
from functools import partial

from jlremote.laptop import known_names
from jlremote.link.ssh_server.control_client import ControlClient, Denied, Runs, SharedPlace
from jlremote.link.ssh_server.served_place import Connect, ServedPlace
from jlremote.link.unix_listener import UnixListener
from jlremote.ssh.interfaces import Connection

log = logging.getLogger(__name__)


class ControlSockets:
    """All control sockets of a link; `gone` is called when a client has left."""

    def __init__(self, connect: Connect, runs: Runs, gone: Callable[[], None]) -> None:
        self._connect = connect
        self._runs = runs
        self._gone = gone
        self._lock = threading.Lock()
        self._listening: dict[str, tuple[UnixListener, SharedPlace]] = {}
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

        The place must be known to run, as that of a session with a forward is.
        """
        path = known_names.control_socket(name)
        shared = SharedPlace(place, self._connect, self._runs)
        if path is None or not shared.is_sure(connection):
            return
        self._forget(name)
        try:
            listener = UnixListener(path, partial(self._serve, name, shared))
        except OSError as error:
            log.info("ssh clients of `%s` cannot share the connection: %s", name, error)
            return
        with self._lock:
            self._listening[name] = listener, shared

    def end(self, session: str) -> None:
        """End the commands of a session, and forget its names: it was stopped."""
        self._end(lambda place: place.session == session, f"the session `{session}` was stopped")

    def stop(self) -> None:
        """End all."""
        self._end(lambda _: True, "the link has ended")

    def _end(self, wanted: Callable[[ServedPlace], bool], reason: str) -> None:
        for name, (_, shared) in tuple(self._listening.items()):
            if wanted(shared.place):
                self._forget(name)
        for client, place in tuple(self._clients.items()):
            if wanted(place):
                client.end(reason)

    def _forget(self, name: str) -> None:
        with self._lock:
            listener, _ = self._listening.pop(name, (None, None))
        if listener is not None:
            listener.close()

    def _serve(self, name: str, shared: SharedPlace, client: socket.socket) -> None:
        try:
            is_ours = _is_ours(client)
        except OSError:  # it has left
            is_ours = False
        if not is_ours:
            client.close()
            return
        served = ControlClient(client, shared)
        with self._lock:
            self._clients[served] = shared.place
        try:
            served.serve()
        except Denied as denied:
            log.info("an ssh client of `%s` was refused: %s", name, denied)
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
