"""The forward of a port: sshtunnel's frame, on our own connection.

Of sshtunnel only the frame is used: a server for each bind, run in a thread, started and stopped
together. Left alone it makes its own connection (without checking the host's key, one for each key
it tries) and closes it; listens on 0.0.0.0; serves each connection by `select` in a thread; ends
both directions when one ends; logs to stderr; and shows the password in its `repr`. Here the
gateway has the connection, and `ConnectionRouter` and `SocketBridge` move the bytes.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import socket
import sys
import threading
from typing import Any

import sshtunnel

from jlremote.errors import Busy, JlrError
from jlremote.place.host.addresses import LOCALHOST, LOCALHOST_6, own_address
from jlremote.ssh.channels.event_loop import READ, EventLoop
from jlremote.ssh.forward.browser_requests import hosts_of
from jlremote.ssh.forward.connection_router import ConnectionRouter, Gateway, WaitLimits
from jlremote.text import reason_of

# sshtunnel's constructor needs a target; ours comes from the gateway with every connection.
_NOWHERE = (LOCALHOST, 1)
_BACKLOG = 1024
_NO_DESCRIPTORS_PAUSE = 0.1
_STOP_SECONDS = 5.0
# For the link itself: requests of commands, a new connection, files that it reads.
_RESERVED_DESCRIPTORS = 32

_log = logging.getLogger(__name__)


class TunnelForward(sshtunnel.SSHTunnelForwarder):  # type: ignore[misc]  # sshtunnel has no types
    """A listener on the loopback whose connections end at the gateway's target.

    The listener stays open while the forward lives, with or without an SSH connection. Its
    `local_port` is 0 before `start` when any port was asked for. A browser's requests are passed on
    only under `hostname` and the names of this machine. `stop` closes all connections.
    """

    is_active = False

    def __init__(
        self,
        local_port: int,
        gateway: Gateway,
        hostname: str = LOCALHOST,
        *,
        limits: WaitLimits | None = None,
    ) -> None:
        self._server = functools.partial(
            _Server, gateway=gateway, hostname=hostname, limits=limits or WaitLimits()
        )
        self.local_port = local_port
        super().__init__(
            ssh_address_or_host=_NOWHERE,
            local_bind_address=(LOCALHOST, local_port),
            remote_bind_address=_NOWHERE,
            logger=_log,
        )

    def start(self) -> None:
        """Listen; `Busy` if the port is taken. Twice is fine."""
        if self.is_active:
            return
        try:
            super().start()
        except BaseException:
            self.is_active = False
            raise
        self.local_port = self._server_list[0].local_port
        self._local_binds = [(LOCALHOST, self.local_port)]

    @property
    def failure(self) -> str | None:
        """Return why the last refused connection was refused."""
        return self._server_list[0].router.failure if self._server_list else None

    def cut(self) -> None:
        """Reset the connections that have a far end, because it is gone or has moved."""
        for server in self._server_list:
            server.loop.call(server.router.cut)

    def __repr__(self) -> str:
        return f"TunnelForward({LOCALHOST}:{self.local_port})"

    __str__ = __repr__

    # The hooks of sshtunnel.

    @staticmethod
    def _read_ssh_config(*_: Any, **__: Any) -> tuple[Any, ...]:
        host, port = _NOWHERE
        return host, None, None, port, None, False

    @staticmethod
    def _consolidate_auth(*_: Any, **__: Any) -> tuple[None, list[Any]]:
        return None, []

    def _connect_to_gateway(self) -> None:
        self.is_active = True  # the gateway is asked at every connection

    def _make_ssh_forward_server_class(self, _remote: Any) -> Any:
        return self._server

    def _make_ssh_forward_handler_class(self, remote: Any) -> type:
        return type("NoHandler", (), {"remote_address": remote})  # `_Server` accepts by itself

    def _stop_transport(self, force: bool = False) -> None:
        """Stop the servers; sshtunnel would close the connection too, and it is not ours."""
        for server in self._server_list:
            server.shutdown()
            server.server_close()
        self.is_alive = self.is_active = False


class _Server(sshtunnel._ForwardServer):  # type: ignore[misc]  # sshtunnel has no types
    """The listeners, and the thread of the whole forward."""

    # On Windows it would let another program take the port over.
    allow_reuse_address = os.name == "posix"
    request_queue_size = _BACKLOG
    _listeners: tuple[socket.socket, ...] = ()
    _paused = False

    def __init__(
        self,
        address: tuple[str, int],
        *rest: Any,
        gateway: Gateway,
        hostname: str,
        limits: WaitLimits,
        **log: Any,
    ) -> None:
        try:
            super().__init__(address, *rest, **log)
            self._listeners = _on_all(self.socket)
        except OSError as error:
            raise _cannot_listen(address[1], error) from error
        self.loop = EventLoop()
        self._finished = threading.Event()
        hosts = hosts_of(self.local_port, hostname)
        self.router = ConnectionRouter(gateway, self.loop, limits, hosts)

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        try:
            self._listen()
            self.loop.run()
            self.router.close()
        finally:
            self.loop.close()
            self._finished.set()

    def shutdown(self) -> None:
        self.loop.stop()
        # A thread that writes to a dead SSH connection ends only when that is closed.
        self._finished.wait(_STOP_SECONDS)

    def server_close(self) -> None:
        super().server_close()
        for listener in self._listeners:
            listener.close()

    def _listen(self) -> None:
        self._paused = False
        self._watch(0, READ)

    def _watch(self, old: int, new: int) -> None:
        for listener in self._listeners:
            self.loop.watch(listener, old, new, functools.partial(self._accept, listener))

    def _accept(self, listener: socket.socket, _events: int) -> None:
        if self._paused or not _has_descriptors_to_spare(listener.fileno()):
            self._pause()
            return
        try:
            accepted, _ = listener.accept()
        except BlockingIOError:  # the client has left
            return
        except OSError:
            self._pause()
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.router.accept(accepted)

    def _pause(self) -> None:
        """Stop accepting for a moment: without free descriptors the listener is always ready."""
        if not self._paused:
            self._paused = True
            self._watch(READ, 0)
            self.loop.call_later(_NO_DESCRIPTORS_PAUSE, self._listen)


def _on_all(listener: socket.socket) -> tuple[socket.socket, ...]:
    """Return a listener and those with its port on its own address and on ::1, where they exist.

    Browsers try ::1 first for a name below `localhost`. If another user's program listened there,
    it would get the token and the cookies.
    """
    listeners, port = [listener], listener.getsockname()[1]
    for address, family in ((own_address(port), socket.AF_INET), (LOCALHOST_6, socket.AF_INET6)):
        try:
            another = socket.create_server((address, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                continue
            for sock in listeners:
                sock.close()
            raise
        listeners.append(another)
    for sock in listeners:
        sock.setblocking(False)
    return tuple(listeners)


def _cannot_listen(port: int, error: OSError) -> JlrError:
    if error.errno == errno.EADDRINUSE:
        hint = "`--port PORT` chooses another one; without it jlr takes a free one"
        return Busy(f"port `{port}` on this machine is taken by another program", hint=hint)
    hint = "choose a `--port` of at least 1024: lower ones are for the administrator"
    message = f"cannot listen on port `{port}` of this machine: {reason_of(error)}"
    return JlrError(message, hint=hint if 0 < port < 1024 else None)


def _has_descriptors_to_spare(descriptor: int) -> bool:
    """Return whether more file descriptors are free than the link needs for itself.

    If local connections took all of them, no command could reach the link, and it could not read
    `known_hosts` or make a new connection. A copy of any open `descriptor` gets the lowest free
    number.
    """
    if sys.platform == "win32":
        return True  # no such limit
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lowest = os.dup(descriptor)
    except OSError:
        return False
    os.close(lowest)
    return limit == resource.RLIM_INFINITY or lowest < limit - _RESERVED_DESCRIPTORS
